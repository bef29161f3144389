package link

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/codes"
	"github.com/service-dev/service/daemon/internal/config"
	"github.com/service-dev/service/internal/problem"
)

// A code that another user requested would link that user's account here. It is refused without asking the backend.
func TestComplete_CodeNotIssuedHere(t *testing.T) {
	run(t, []answer{approved}, func(t *testing.T, m *Manager, f *fake, dir string) {
		_, err := m.Complete(t.Context(), caller.Caller{}, "sdc_of_somebody_else", Wait{})
		wantCode(t, err, problem.CodeUnknownDeviceCode)
		if len(f.at) != 0 {
			t.Errorf("%d polls of a foreign code, want none", len(f.at))
		}
		if entries, _ := os.ReadDir(dir); len(entries) != 0 {
			t.Error("files:", entries)
		}
	})
}

// Restarting the daemon between request and approval loses neither the code nor the call that needed it.
func TestComplete_AfterARestart(t *testing.T) {
	dir := t.TempDir()
	var code string
	var shell = map[string]string{"SERVICE_TELEMETRY": "0"}
	runWith(t, dir, []answer{pending(0)}, func(t *testing.T, m *Manager, _ *fake, _ string) {
		target, _, err := m.Target(t.Context(), caller.Caller{})
		if err != nil {
			t.Fatal(err)
		}
		gated := GatedCall{Tool: "createSimulatorSession", Args: json.RawMessage(`{"project":"a"}`),
			Caller: caller.Caller{Cwd: "/home/a", Env: map[string]string{"CI": "1"}}}
		shown, err := m.Ask(t.Context(), target, gated,
			func(context.Context) error { return &problem.Error{Code: problem.CodeAuthRequired} })
		if err != nil {
			t.Fatal(err)
		}
		code = shown.DeviceCode.DeviceCode
		if _, err := m.Complete(t.Context(), caller.Caller{}, code,
			Wait{Max: 6 * time.Second}); asProblem(err).Code != problem.CodeAuthTimeout {
			t.Errorf("Complete before the restart: %v, want CodeAuthTimeout", err)
		}
	})
	if data, err := os.ReadFile(filepath.Join(runDir(dir), codes.FileName)); err != nil ||
		strings.Contains(string(data), code) {
		t.Errorf("codes.json is %s (error %v); want hashes only", data, err)
	}
	runWith(t, dir, []answer{approved}, func(t *testing.T, m *Manager, f *fake, _ string) {
		who := caller.Caller{Cwd: "/elsewhere", Env: shell}
		if _, err := m.Complete(t.Context(), who, code+"x", Wait{}); asProblem(err).Code != problem.CodeUnknownDeviceCode {
			t.Errorf("Complete with another code: %v, want unknown_device_code", err)
		}
		out, err := m.Complete(t.Context(), who, code, Wait{})
		if err != nil || out.AccountID != "acc" {
			t.Fatalf("%+v, %v", out, err)
		}
		gated, ok := m.TakeGated(code)
		if !ok || gated.Tool != "createSimulatorSession" || string(gated.Args) != `{"project":"a"}` ||
			gated.Caller.Cwd != "/home/a" ||
			!maps.Equal(gated.Caller.Env, shell) {
			t.Errorf("the gated call is %+v, %v; want the stored one", gated, ok)
		}
	})
	runWith(t, dir, []answer{approved}, func(t *testing.T, m *Manager, f *fake, _ string) {
		_, err := m.Complete(t.Context(), caller.Caller{}, code, Wait{})
		wantCode(t, err, problem.CodeUnknownDeviceCode)
		if len(f.at) != 0 {
			t.Error("a used code was polled again")
		}
	})
}

// The stored call is repeated at the backend that issued the code, even if the completing shell uses another one.
func TestComplete_AfterARestartAtTheSameBackend(t *testing.T) {
	m := New(Options{Config: config.Default})
	who := caller.Caller{Env: map[string]string{"SERVICE_BACKEND_URL": "https://a.test", "CI": "1"}}
	if got := m.callerAt(who, "/a", "https://a.test"); !maps.Equal(got.Env, who.Env) || got.Cwd != "/a" {
		t.Errorf("caller at the same backend: %v; want the same environment and the stored directory", got)
	}
	if got := m.callerAt(who, "", "https://b.test"); got.Env["SERVICE_BACKEND_URL"] != "https://b.test" ||
		got.Env["CI"] != "1" {
		t.Errorf("caller at another backend: %v; want that backend and CI kept", got)
	}
	if got := m.callerAt(who, "", "embedded:one"); got.Env["SERVICE_BACKEND_URL"] != "embedded:" ||
		who.Env["SERVICE_BACKEND_URL"] != "https://a.test" {
		t.Errorf("caller at the embedded backend: %v; want embedded: and the original unchanged", got)
	}
}
