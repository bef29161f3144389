//go:build unix

package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A waiting call ends if another program writes a link for its backend to auth.json. The call's code can then no
// longer be approved.
func TestWait_EndsWhenLinkedElsewhere(t *testing.T) {
	t.Parallel()
	b := startBackend(t, "")
	for name, linkElsewhere := range map[string]func(t *testing.T, w *world, backendURL, email string){
		"servicectl login": func(_ *testing.T, w *world, _, email string) { link(w, email) },
		"copied auth.json": copyLink,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSpy(t, b.url)
			w := newWorld(t, "", "SERVICE_BACKEND_URL="+s.url)
			a := startAgent(w, "legacy", false)
			code, page := ask(t, a)
			_, answer := a.start("completeAuthLink", map[string]any{"deviceCode": code, "pollIntervalSeconds": 30},
				false, time.Minute)
			must(t, "the first poll", func() bool { return len(s.polls(code)) == 1 })

			linkElsewhere(t, w, s.url, filepath.Base(t.Name())+"@example.org")
			r := a.wait(answer)
			checkLinked(t, w, r)
			if retried, _ := r.Structured["retried"].(map[string]any); retried["status"] != "active" {
				t.Errorf("retried is %v, want an active session", r.Structured["retried"])
			}
			if n := len(s.polls(code)); n != 1 {
				t.Errorf("the call ended after %d polls, want 1 and then auth.json", n)
			}
			wantCancelled(t, page)
		})
	}
}

// A call that uses URL elicitation ends in the same way.
func TestInlineWait_EndsWhenLinkedElsewhere(t *testing.T) {
	t.Parallel()
	b := startBackend(t, "")
	w := newWorld(t, "", "SERVICE_BACKEND_URL="+b.url)
	a := startAgent(w, "modern", true)
	_, answer := a.start("createSimulatorSession", map[string]any{"project": "com.example.elsewhere"}, true,
		time.Minute)
	asked := <-a.elicited
	link(w, "inline@example.org")
	if r := a.wait(answer); r.IsError || r.str(t, "status") != "active" {
		t.Errorf("after the login: got %v, want an active session", r.Structured)
	}
	wantCancelled(t, asked["url"].(string))
}

// copyLink links another state directory and copies its auth.json.
func copyLink(t *testing.T, w *world, backendURL, email string) {
	t.Helper()
	other := newWorld(t, "", "SERVICE_BACKEND_URL="+backendURL)
	link(other, email)
	data, err := os.ReadFile(filepath.Join(other.dir, "auth.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.dir, "auth.json"), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// wantCancelled waits until the page of an abandoned code no longer offers to approve the code.
func wantCancelled(t *testing.T, page string) {
	t.Helper()
	visitor := newPerson(t)
	must(t, "the page says that the code is no longer valid", func() bool {
		visitor.open(page)
		return visitor.status == http.StatusNotFound
	})
}
