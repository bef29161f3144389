//go:build unix

package e2e

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// whoami reports each state with its own exit code in a stable format, and never prints the token.
func TestWhoami_StatesAndExitCodes(t *testing.T) {
	t.Parallel()
	b := startBackend(t, "")
	w := newWorld(t, "", "SERVICE_BACKEND_URL="+b.url)
	token := ""
	is := func(state string, exit int, linked any) {
		t.Helper()
		out, errs, code := w.ctl("whoami", "--json", "--refresh")
		var answer map[string]any
		if err := json.Unmarshal([]byte(out), &answer); err != nil {
			t.Fatalf("%s: %v: %s%s", state, err, out, errs)
		}
		delete(answer, "detail") // only present if there is a problem to explain
		want := []string{"accountId", "backendUrl", "expiresAt", "installId", "linked", "linkedAt", "state", "tier",
			"verifiedAgeSeconds"}
		if got := slices.Sorted(maps.Keys(answer)); !slices.Equal(got, want) {
			t.Errorf("%s: got fields %v, want the documented ones", state, got)
		}
		if code != exit || answer["linked"] != linked || answer["state"] != state {
			t.Errorf("got exit %[3]d, %[4]s; want %[1]s, exit %[2]d", state, exit, code, out)
		}
		shown, remarks, code := w.ctl("whoami", "--refresh")
		if code != exit {
			t.Errorf("%s without --json: exit %d, want %d", state, code, exit)
		}
		if all := out + errs + shown + remarks; token != "" && strings.Contains(all, token) ||
			strings.Contains(all, "svc_") {
			t.Errorf("%s: the output contains the token: %s", state, all)
		}
	}
	is("not_linked", 1, false)

	link(w, "whoami@example.org")
	auth := filepath.Join(w.dir, "auth.json")
	good, err := os.ReadFile(auth)
	if err != nil {
		t.Fatal(err)
	}
	var stored struct{ AuthToken string }
	if json.Unmarshal(good, &stored) != nil || stored.AuthToken == "" {
		t.Fatal("auth.json contains no token")
	}
	token = stored.AuthToken
	is("linked", 0, true)

	b.stop()
	is("linked", 2, nil)
	b.start()
	is("linked", 0, true)

	write(t, auth, good[:len(good)/2])
	must(t, "whoami notices the broken auth.json", func() bool { _, _, exit := w.ctl("whoami"); return exit == 1 })
	is("corrupt", 1, false)
	if now, _ := os.ReadFile(auth); string(now) != string(good[:len(good)/2]) {
		t.Error("the broken auth.json was overwritten")
	}
	write(t, auth, good)
	must(t, "whoami notices the repaired auth.json", func() bool { _, _, exit := w.ctl("whoami"); return exit == 0 })

	b.admin("revoke", "--email", "whoami@example.org")
	is("revoked", 1, false)
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Two shells with different settings share one daemon.
func TestDaemon_TwoShellsKeepTheirSettings(t *testing.T) {
	t.Parallel()
	first, second := newSpy(t, startBackend(t, "").url), newSpy(t, startBackend(t, "").url)
	w := newWorld(t, "")
	a := w.with("SERVICE_BACKEND_URL=" + first.url)
	b := w.with("SERVICE_BACKEND_URL="+second.url, "SERVICE_TELEMETRY=0")
	link(a, "shells@example.org")
	var stored struct{ AuthToken, BackendURL string }
	if !readJSON(filepath.Join(w.dir, "auth.json"), &stored) || stored.BackendURL != first.url {
		t.Fatalf("auth.json names the backend %q, want the first shell's", stored.BackendURL)
	}
	pid := w.daemonPID()

	done := make(chan string, 20)
	call := func(shell *world, want string) {
		out, errs, _ := shell.ctl("tool", "call", "createSimulatorSession",
			`{"project":"com.example.shells","openBrowser":false}`)
		if !strings.Contains(out, want) {
			done <- out + errs
			return
		}
		done <- ""
	}
	for range 10 {
		go call(a, `"sessionUrl"`)
		go call(b, `"auth_required"`)
	}
	for range 20 {
		if wrong := <-done; wrong != "" {
			t.Errorf("a call did not use its shell's settings: %s", wrong)
		}
	}
	// If only a shell names a backend and the daemon uses another one, the shell's backend gets no telemetry.
	for shell, want := range map[*world][2]string{a: {first.url, "SERVICE_BACKEND_URL"},
		b: {second.url, "SERVICE_TELEMETRY"}} {
		out, _, _ := shell.ctl("status", "--json")
		var status struct {
			PID     int
			Backend struct{ URL, ChosenBy string }
			Consent struct {
				UploadAllowed bool
				DecidedBy     string
			}
		}
		if json.Unmarshal([]byte(out), &status) != nil || status.PID != pid || status.Backend.URL != want[0] ||
			status.Backend.ChosenBy != "env" ||
			status.Consent.DecidedBy != want[1] || status.Consent.UploadAllowed {
			t.Errorf("want backend %s and telemetry by %s: %s", want[0], want[1], out)
		}
	}
	if !slices.ContainsFunc(first.all(), func(p passed) bool { return p.authorization == "Bearer "+stored.AuthToken }) {
		t.Error("the token was not sent to its own backend")
	}
	if len(second.all()) == 0 {
		t.Error("the second shell's backend got no requests")
	}
	for _, p := range second.all() {
		if p.authorization != "" {
			t.Errorf("a request to %s of the other backend contains credentials", p.path)
		}
	}
	if left := entries(t, w.dir); slices.Contains(left, "config.yaml") || slices.Contains(left, "consent") {
		t.Errorf("the second shell's settings were stored: got files %v, want neither config.yaml nor consent", left)
	}
	if data, _ := os.ReadFile(filepath.Join(w.dir, "auth.json")); strings.Contains(string(data), second.url) {
		t.Errorf("the second shell's backend was stored: %s", data)
	}
}
