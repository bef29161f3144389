//go:build unix

package app

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/session"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/proto/control"
	"github.com/service-dev/service/test/controltest"
)

// tool calls a tool on behalf of a shell in cwd and decodes its structured answer.
func (d *testDaemon) tool(t *testing.T, cwd, name, arguments string, into any) {
	t.Helper()
	r, err := controltest.Tool(t.Context(), d.ctl.As(control.Caller{Cwd: cwd}), name, arguments)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if r.IsError {
		t.Fatalf("%s: %s", name, r.Structured)
	}
	if err := json.Unmarshal(r.Structured, into); err != nil {
		t.Fatal(err)
	}
}

// TestLocalSimulationByTools does everything that an agent can do without an account, against a complete daemon. An
// attached app keeps the daemon running; once it detaches, the daemon stops when idle.
func TestLocalSimulationByTools(t *testing.T) {
	dir, cwd := short(t), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "config.yaml"), []byte("idle_timeout: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := start(t, dir, Options{})
	var started struct{ SessionID, AppEndpoint, AppTokenFile, Clock string }
	d.tool(t, cwd, "startLocalSimulation", `{"clock":"virtual"}`, &started)
	if !session.IsLocal(started.SessionID) || started.Clock != backend.ClockVirtual {
		t.Fatalf("%+v", started)
	}
	begin, on := counter()
	o := session.Opened{AppTokenFile: started.AppTokenFile}
	o.AppEndpoint = started.AppEndpoint
	app := attach(t, o, true, begin, on)
	var answer map[string]any
	d.tool(t, cwd, "injectInput", `{"kind":"tap"}`, &answer)
	d.tool(t, cwd, "advanceTime", `{"ms":10000}`, &answer)
	d.tool(t, cwd, "expectDisplay", `{"text":["count 6"]}`, &answer)
	d.tool(t, cwd, "waitForEvent", `{"type":"display.show","since":0}`, &answer)
	if answer["status"] != "found" {
		t.Errorf("waiting: %v", answer)
	}
	select {
	case <-d.stopOnError:
		t.Fatal("the daemon stopped while an app was attached")
	case <-time.After(2500 * time.Millisecond): // more than twice idle_timeout
	}
	app.leave()
	d.end(t)
	data, err := os.ReadFile(filepath.Join(dir, session.Dir, started.SessionID, "events.jsonl"))
	if err != nil || len(data) == 0 {
		t.Fatal(err)
	}
	var last glasses.Event
	lines := bytes.Split(bytes.TrimSpace(data), []byte("\n"))
	if err := json.Unmarshal(lines[len(lines)-1], &last); err != nil || last.Type != glasses.RowGlassesDetached {
		t.Errorf("the last row is %s (error %v), want glasses_detached", lines[len(lines)-1], err)
	}
}
