//go:build unix

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fiveFields links a machine at the backend and returns its auth.json without the backend's address, as another
// program would write it.
func fiveFields(t *testing.T, backendURL, email string) []byte {
	t.Helper()
	other := newWorld(t, "", "SERVICE_BACKEND_URL="+backendURL)
	link(other, email)
	var fields map[string]any
	if !readJSON(filepath.Join(other.dir, "auth.json"), &fields) {
		t.Fatal("auth.json cannot be read")
	}
	delete(fields, "backendUrl")
	data, err := json.Marshal(fields)
	if err != nil || len(fields) != 5 {
		t.Fatalf("auth.json has the fields %v (%v), want five without backendUrl", fields, err)
	}
	return data
}

// An auth.json with only the five fields of another program is a link at the backend of config.yaml, not at a backend
// set in a shell. A later setting does not send its token to another backend.
func TestFiveFields_LinkAtTheConfiguredBackend(t *testing.T) {
	t.Parallel()
	b := startBackend(t, "")
	stranger := newSpy(t, b.url)
	text := fiveFields(t, b.url, "five@example.org")
	w := newWorld(t, "backend_url: "+b.url+"\n")
	path := filepath.Join(w.dir, "auth.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	elsewhere := w.with("SERVICE_BACKEND_URL=" + stranger.url)
	if out, _, exit := elsewhere.ctl("whoami", "--json"); exit != 1 || !strings.Contains(out, `"other_backend"`) {
		t.Errorf("whoami of a shell with another backend: exit %d, want 1 and other_backend: %s", exit, out)
	}
	if out, errs, exit := w.ctl("whoami", "--json"); exit != 0 {
		t.Errorf("whoami: exit %d, want 0: %s%s", exit, out, errs)
	}
	a := startAgent(w, "modern", false)
	r := a.call("createSimulatorSession", map[string]any{"project": "com.example.five", "openBrowser": false})
	if r.IsError || r.str(t, "status") != "active" {
		t.Errorf("a gated call: got %v, want an active session", r.Structured)
	}
	var before, after map[string]any
	if json.Unmarshal(text, &before) != nil || !readJSON(path, &after) || after["backendUrl"] != b.url ||
		after["authToken"] != before["authToken"] || len(after) != 6 {
		t.Errorf("auth.json has %d fields and the backend %v; want the five fields and %s",
			len(after), after["backendUrl"], b.url)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("auth.json: %v, %v; want mode 0600", info, err)
	}

	config := []byte("backend_url: " + stranger.url + "\n")
	if err := os.WriteFile(filepath.Join(w.dir, "config.yaml"), config, 0o600); err != nil {
		t.Fatal(err)
	}
	must(t, "the new setting counts", func() bool {
		out, _, exit := w.ctl("whoami", "--json")
		return exit == 1 && strings.Contains(out, `"other_backend"`)
	})
	w.ctl("tool", "call", "listProjects", `{"openBrowser":false}`)
	stopDaemon(w)
	w.ctl("tool", "call", "listProjects", `{"openBrowser":false}`)
	for _, p := range stranger.all() {
		if p.authorization != "" {
			t.Errorf("the other backend received a token with %s", p.path)
		}
	}
}

// If the backend cannot be added to the file, the token is not used at any backend.
func TestFiveFields_ReadOnlyFile(t *testing.T) {
	t.Parallel()
	b := startBackend(t, "")
	s := newSpy(t, b.url)
	text := fiveFields(t, b.url, "readonly@example.org")
	w := newWorld(t, "backend_url: "+s.url+"\n")
	path := filepath.Join(w.dir, "auth.json")
	if err := os.WriteFile(path, text, 0o400); err != nil {
		t.Fatal(err)
	}
	out, _, exit := w.ctl("whoami", "--json")
	if exit != 1 || !strings.Contains(out, `"other_backend"`) || !strings.Contains(out, "read-only") {
		t.Errorf("whoami: exit %d, want 1, other_backend and the reason: %s", exit, out)
	}
	if now, err := os.ReadFile(path); err != nil || string(now) != string(text) {
		t.Errorf("auth.json became %s (%v), want it unchanged", now, err)
	}
	w.ctl("tool", "call", "listProjects", `{"openBrowser":false}`)
	for _, p := range s.all() {
		if p.authorization != "" {
			t.Errorf("a token was sent with %s", p.path)
		}
	}
}
