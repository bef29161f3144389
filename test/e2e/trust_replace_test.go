//go:build unix

package e2e

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// otherAccount writes auth.json with a valid link of another account at the backend.
func otherAccount(t *testing.T, w *world, url string) {
	t.Helper()
	data, err := json.Marshal(map[string]any{
		"authToken": "svc_old", "accountId": "0b0e7e1c-6f0a-4b1e-9a55-2f4f9ad6a001", "linkedAt": "2026-01-02T03:04:05Z", "expiresAt": nil,
		"scope": "account_full", "backendUrl": url,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.dir, "auth.json"), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func authToken(t *testing.T, w *world) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(w.dir, "auth.json"))
	if err != nil {
		return ""
	}
	var file struct{ AuthToken string }
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	return file.AuthToken
}

// A login or an agent replaces a valid link of another account only if the user requests it; otherwise the new token
// is revoked. If the user requests it, the old token is revoked. A logout revokes the token that it deletes.
func TestLiveLink_ReplacedOnlyOnRequest(t *testing.T) {
	t.Parallel()
	f := newFake(t, "https://example.org/activate", []http.HandlerFunc{approved})
	w := newWorld(t, "", "SERVICE_BACKEND_URL="+f.url, "SERVICE_NO_AUTO_OPEN=1")
	otherAccount(t, w, f.url)

	l := startLogin(w, "--json")
	refused, _ := l.until("error")["error"].(map[string]any)
	if code := l.exit(); code != 1 || refused["code"] != "link_conflict" || refused["retryable"] != false ||
		!strings.Contains(refused["fixHint"].(string), "login --replace") {
		t.Errorf("login: exit %d, want 1 and link_conflict: %v", code, refused)
	}
	if got := authToken(t, w); got != "svc_old" || !slices.Equal(f.ended(), []string{fakeToken}) {
		t.Errorf("auth.json contains %s, revoked %v; want the old token kept, the new one revoked", got, f.ended())
	}

	l = startLogin(w, "--json", "--replace")
	l.until("linked")
	if code := l.exit(); code != 0 || authToken(t, w) != fakeToken ||
		!slices.Equal(f.ended(), []string{fakeToken, "svc_old"}) {
		t.Errorf("login --replace: exit %d, auth.json contains %s, revoked %v; want 0, the new token, 2 revoked", code,
			authToken(t, w), f.ended())
	}

	out, _, exit := w.ctl("logout", "--json")
	if exit != 0 || !strings.Contains(out, `"revoked": true`) || authToken(t, w) != "" ||
		!slices.Equal(f.ended(), []string{fakeToken, "svc_old", fakeToken}) {
		t.Errorf("logout: exit %d, want 0 and auth.json without a token: %s; revoked %v", exit, out, f.ended())
	}
}

// If the disk is full, login reports it and exits with 2, and the daemon writes auth.json when there is space again.
func TestLogin_DiskFull(t *testing.T) {
	t.Parallel()
	f := newFake(t, "https://example.org/activate", []http.HandlerFunc{approved})
	w := newWorld(t, "", "SERVICE_BACKEND_URL="+f.url, "SERVICE_NO_AUTO_OPEN=1")
	path := filepath.Join(w.dir, "auth.json")
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
	l := startLogin(w, "--json")
	line := l.until("linked")
	if code := l.exit(); code != 2 || line["linked"] != true || line["written"] != false ||
		line["code"] != "auth_file_write_failed" || line["fixHint"] == "" {
		t.Errorf("login: exit %d, want 2 and auth_file_write_failed: %v", code, line)
	}
	if out, _, exit := w.ctl("whoami", "--json"); exit != 0 ||
		!strings.Contains(out, "auth.json could not be written") {
		t.Errorf("whoami: exit %d, want 0 and a note about auth.json: %s", exit, out)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if !eventually(15*time.Second, func() bool { return authToken(t, w) == fakeToken }) {
		t.Error("auth.json was not written after space became available")
	}
}

// An agent's device code survives a restart of the daemon, and so does the call that started the login.
func TestDeviceCode_SurvivesDaemonRestart(t *testing.T) {
	t.Parallel()
	f := newFake(t, "https://example.org/activate", []http.HandlerFunc{approved})
	w := newWorld(t, "", "SERVICE_BACKEND_URL="+f.url, "SERVICE_NO_AUTO_OPEN=1")
	a := startAgent(w, "legacy", false)
	asked := a.call("createSimulatorSession", map[string]any{"project": "com.example.app"})
	if data, err := os.ReadFile(filepath.Join(w.dir, "run", "codes.json")); err != nil ||
		strings.Contains(string(data), "sdc_fake") {
		t.Fatalf("codes.json is missing or contains the device code: %s, %v", data, err)
	}
	if out, errs, exit := w.ctl("daemon", "restart"); exit != 0 {
		t.Fatalf("daemon restart failed: %s %s", out, errs)
	}
	linked := a.call("completeAuthLink", map[string]any{"deviceCode": asked.str(t, "deviceCode")})
	if linked.Structured["linked"] != true {
		t.Fatalf("completeAuthLink did not link: %v", linked.Structured)
	}
	if retried, ok := linked.Structured["retried"].(map[string]any); !ok || retried["code"] == nil &&
		retried["status"] == nil {
		t.Errorf("the original call was not retried: %v", linked.Structured)
	}
	wantError(t, a.call("completeAuthLink", map[string]any{"deviceCode": "sdc_of_somebody_else"}),
		"unknown_device_code", false)
	if n := len(f.gaps()); n != 0 {
		t.Errorf("the code of another daemon was polled %d times, want 0", n)
	}
}
