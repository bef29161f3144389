//go:build unix

package e2e

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A code is valid for as long as its backend announces, even if that is longer than one call waits, and a later
// daemon continues to poll it.
func TestLongWindow_SurvivesARestart(t *testing.T) {
	t.Parallel()
	b := startBackend(t, "", "SERVICE_BACKEND_LINK_CODE_TTL=1200")
	w := newWorld(t, "", "SERVICE_BACKEND_URL="+b.url)
	a := startAgent(w, "modern", false)
	r := a.call("createSimulatorSession", map[string]any{"project": "com.example.window", "openBrowser": false})
	if left, _ := r.Structured["expiresInSeconds"].(float64); left < 1100 || left > 1200 {
		t.Errorf("expiresInSeconds is %v, want the 1200 s of the backend", r.Structured["expiresInSeconds"])
	}
	stopDaemon(w)
	code := map[string]any{"deviceCode": r.str(t, "deviceCode"), "maxWaitSeconds": 1}
	wantError(t, a.call("completeAuthLink", code), "auth_timeout", true)
	newPerson(t).approve(r.str(t, "verificationUrl"), "window@example.org")
	must(t, "the daemon links without a call", func() bool { _, _, exit := w.ctl("whoami"); return exit == 0 })
	checkLinked(t, w, a.call("completeAuthLink", code))

	l := startLogin(newWorld(t, "", "SERVICE_BACKEND_URL="+b.url))
	if notice, _ := l.until("code")["notice"].(string); !strings.Contains(notice, "1200 s") {
		t.Errorf("login: notice %q, want 1200 s", notice)
	}
	if left, _ := l.until("waiting")["remainingSeconds"].(float64); left < 1100 || left > 1200 {
		t.Errorf("login: %v s remain, want up to 1200", left)
	}
}

// Usage events record how each wait ended: one timeout per code followed by its approval, and success if another
// program wrote the link.
func TestLoginCompleted_IsRecorded(t *testing.T) {
	t.Parallel()
	b := startBackend(t, "")
	for name, finish := range map[string]func(t *testing.T, w *world, page string){
		"approved": func(t *testing.T, _ *world, page string) { newPerson(t).approve(page, "outcome@example.org") },
		"linked elsewhere": func(t *testing.T, w *world, _ string) {
			copyLink(t, w, b.url, filepath.Base(t.Name())+"@example.org")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "", "SERVICE_BACKEND_URL="+b.url)
			a := startAgent(w, "legacy", false)
			code, page := ask(t, a)
			for range 2 {
				wantError(t, a.call("completeAuthLink", map[string]any{"deviceCode": code, "maxWaitSeconds": 1}),
					"auth_timeout", true)
				stopDaemon(w)
			}
			_, answer := a.start("completeAuthLink", map[string]any{"deviceCode": code}, false, time.Minute)
			finish(t, w, page)
			checkLinked(t, w, a.wait(answer))
			for text, want := range map[string]int{`"account.login_initiated"`: 1, `"account.login_completed"`: 2,
				`"outcome":"polling_aborted"`: 1, `"outcome":"success"`: 1, `"account.linked"`: 1} {
				if n := recorded(w, text); n != want {
					t.Errorf("%s was recorded %d times, want %d:\n%s", text, n, want, events(w))
				}
			}
		})
	}
}
