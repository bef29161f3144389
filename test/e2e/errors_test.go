//go:build unix

package e2e

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// These tests produce every documented error, auth_required and the 401 of a revoked token with real programs.

func wantError(t *testing.T, r toolResult, code string, retryable bool) {
	t.Helper()
	if !r.IsError || r.Structured["code"] != code || r.Structured["retryable"] != retryable {
		t.Errorf("got %v (error %v), want %s, retryable %v", r.Structured, r.IsError, code, retryable)
	}
	if hint, _ := r.Structured["fixHint"].(string); hint == "" {
		t.Errorf("%s has no fixHint", code)
	}
	if message, _ := r.Structured["message"].(string); message == "" {
		t.Errorf("%s has no message", code)
	}
	if len(r.Content) == 0 || !strings.Contains(r.Content[0].Text, code) {
		t.Errorf("the text content does not contain %s: %v", code, r.Content)
	}
}

func ask(t *testing.T, a *agent) (deviceCode, url string) {
	t.Helper()
	r := a.call("createSimulatorSession", map[string]any{"project": "com.example.errors", "openBrowser": false})
	if r.IsError || r.str(t, "status") != "auth_required" || r.Structured["retryable"] != true ||
		r.Structured["code"] != "auth_required" {
		t.Fatalf("unlinked: got %v, want a retryable auth_required", r.Structured)
	}
	for _, field := range []string{"userCode", "fixHint", "summary"} {
		r.str(t, field)
	}
	return r.str(t, "deviceCode"), r.str(t, "verificationUrl")
}

func TestLinking_Errors(t *testing.T) {
	t.Parallel()
	b := startBackend(t, "", "SERVICE_BACKEND_LINK_CODE_TTL=8")
	w := newWorld(t, "", "SERVICE_BACKEND_URL="+b.url)
	a := startAgent(w, "legacy", false)

	wantError(t, a.call("completeAuthLink", map[string]any{"deviceCode": "sdc_never_issued"}), "unknown_device_code",
		false)
	wantError(t, a.call("completeAuthLink", map[string]any{}), "invalid_request", false)
	wantError(t, a.call("completeAuthLink", map[string]any{"deviceCode": "x", "surprise": 1}), "invalid_request",
		false)

	code, url := ask(t, a)
	wantError(t, a.call("completeAuthLink", map[string]any{"deviceCode": code, "maxWaitSeconds": 1}), "auth_timeout",
		true)
	newPerson(t).deny(url)
	wantError(t, a.call("completeAuthLink", map[string]any{"deviceCode": code}), "device_code_denied", true)

	code, _ = ask(t, a)
	wantError(t, a.call("completeAuthLink", map[string]any{"deviceCode": code}), "device_code_expired", true)

	code, url = ask(t, a)
	newPerson(t).approve(url, "errors@example.org")
	linked := a.call("completeAuthLink", map[string]any{"deviceCode": code})
	checkLinked(t, w, linked)

	if out := b.admin("revoke", "--email", "errors@example.org"); !strings.Contains(out, "revoked 1") {
		t.Errorf("admin revoke: got %s, want one revoked link", out)
	}
	for range 2 { // the backend answers the first call with 401; the daemon answers the second itself
		r := a.call("createSimulatorSession", map[string]any{"project": "com.example.errors", "openBrowser": false})
		if r.str(t, "status") != "auth_required" || r.str(t, "reason") != "revoked" {
			t.Errorf("after revocation: got %v, want auth_required with reason revoked", r.Structured)
		}
	}
	if out, _, exit := w.ctl("whoami", "--json"); exit != 1 || !strings.Contains(out, "revoked") {
		t.Errorf("whoami of a revoked link: exit %d, want 1 and revoked: %s", exit, out)
	}
}

func TestBackend_Unreachable(t *testing.T) {
	t.Parallel()
	b := startBackend(t, "")
	w := newWorld(t, "", "SERVICE_BACKEND_URL="+b.url)
	a := startAgent(w, "modern", false)
	code, url := ask(t, a)
	b.stop()
	start := time.Now()
	_, ch := a.start("completeAuthLink", map[string]any{"deviceCode": code}, true, 2*time.Minute)
	wantError(t, a.wait(ch), "backend_unreachable", true)
	if took := time.Since(start); took > 45*time.Second {
		t.Errorf("the error took %s, want at most 45 s", took)
	}
	// The network recovers, and the daemon continues to poll with the same code.
	b.start()
	newPerson(t).approve(url, "back@example.org")
	checkLinked(t, w, a.call("completeAuthLink", map[string]any{"deviceCode": code}))
}

func TestBackend_InvalidResponse(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	for name, answer := range map[string]string{"html": "<html>hello</html>", "empty": "{}",
		"types": `{"pending":"yes"}`} {
		f := newFake(t, "http://127.0.0.1:1/activate?code="+fakeUserCode, []http.HandlerFunc{
			func(rw http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(rw, answer) },
		})
		a := startAgent(w.with("SERVICE_BACKEND_URL="+f.url), "legacy", false)
		code := a.call("createSimulatorSession", map[string]any{"openBrowser": false}).Structured["deviceCode"]
		if code == nil {
			t.Fatalf("%s: no device code was issued", name)
		}
		wantError(t, a.call("completeAuthLink", map[string]any{"deviceCode": code}), "backend_invalid_response", false)
	}
}

// The connection breaks after the backend has committed and before the token arrives.
func TestRedemption_ConnectionCutAfterCommit(t *testing.T) {
	t.Parallel()
	b := startBackend(t, newPostgres(t), "SERVICE_BACKEND_LINK_UNUSED_TOKEN_AFTER=2")
	cut := newCutter(t, b.url, func(verificationURL string) {
		newPerson(t).approve(verificationURL,
			"cut@example.org")
	})
	w := newWorld(t, "", "SERVICE_BACKEND_URL="+cut.url)
	login := w.command("servicectl", "login")
	var out strings.Builder
	login.Stdout = &out
	err := login.Run()
	if err == nil || login.ProcessState.ExitCode() == 0 {
		t.Fatalf("login succeeded without a token: %s", out.String())
	}
	if !strings.Contains(out.String(), "response was lost") || !strings.Contains(out.String(), "login") {
		t.Errorf("login does not say that the response was lost and to log in again: %s", out.String())
	}
	if !strings.Contains(events(w), `"outcome":"network_error"`) {
		t.Errorf("no network_error in the telemetry events: %s", events(w))
	}
	must(t, "the unused token is revoked", func() bool {
		rows := strings.Split(strings.TrimSpace(b.admin("links", "cut@example.org")), "\n")
		return len(rows) == 2 && !strings.HasSuffix(rows[1], "-")
	})
	if out, _, exit := w.ctl("whoami", "--json"); exit != 1 {
		t.Errorf("whoami: exit %d, want 1: %s", exit, out)
	}
}

// events returns the local telemetry log.
func events(w *world) string {
	data, _ := os.ReadFile(filepath.Join(w.dir, "telemetry", "events.jsonl"))
	return string(data)
}
