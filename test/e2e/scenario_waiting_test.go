//go:build unix

package e2e

import (
	"strings"
	"testing"
	"time"
)

// With URL elicitation the first call links the account without further calls.
func TestElicitation_LinksInOneCall(t *testing.T) {
	t.Parallel()
	b := startBackend(t, "")
	for _, protocol := range []string{"legacy", "modern"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "", "SERVICE_BACKEND_URL="+b.url)
			a := startAgent(w, protocol, true)
			_, answer := a.start("createSimulatorSession", map[string]any{"project": "com.example.elicit"}, true,
				time.Minute)
			select {
			case asked := <-a.elicited:
				page, _ := asked["url"].(string)
				text, _ := asked["message"].(string)
				_, code, _ := strings.Cut(page, "code=")
				if code == "" || !strings.Contains(text, code) {
					t.Fatalf("the elicitation does not contain the code: %v", asked)
				}
				newPerson(t).approve(page, protocol+"@example.org")
			case early := <-answer:
				t.Fatalf("the call returned without an elicitation: %s", early.Result)
			case <-time.After(20 * time.Second):
				t.Fatal("no elicitation within 20 s")
			}
			if r := a.wait(answer); r.IsError || r.str(t, "status") != "active" || r.str(t, "sessionUrl") == "" {
				t.Errorf("after approval: got %v, want an active session with a URL", r.Structured)
			}
			if opened := strings.Join(w.openedURLs(), " "); strings.Contains(opened, "/activate") {
				t.Errorf("the daemon also opened a page: %s", opened)
			}
		})
	}
}

// Polls are reported as progress, a cancelled call ends immediately while polling continues, and two calls share one
// series of polls.
func TestPolling_ContinuesInDaemon(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{"legacy", "modern"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			b := startBackend(t, "")
			s := newSpy(t, b.url)
			w := newWorld(t, "", "SERVICE_BACKEND_URL="+s.url)
			a := startAgent(w, protocol, false)
			code, page := ask(t, a)
			// The tool changes these values to 600 and 1.
			args := map[string]any{"deviceCode": code, "maxWaitSeconds": 601, "pollIntervalSeconds": 0}

			first, cancelled := a.start("completeAuthLink", args, true, time.Minute)
			_, second := a.start("completeAuthLink", args, false, time.Minute)
			must(t, "three polls", func() bool { return len(s.polls(code)) >= 3 })
			must(t, "three progress messages", func() bool { return len(a.progressed) >= 3 })
			polls := s.polls(code)
			for i := 1; i < len(polls); i++ {
				if gap := polls[i].Sub(polls[i-1]); gap < 900*time.Millisecond {
					t.Errorf("two calls with one code caused polls %s apart, want at least 900 ms", gap)
				}
			}

			start := time.Now()
			a.cancel(first)
			if line := <-cancelled; line.Error == nil || time.Since(start) > 20*time.Second {
				t.Errorf("the cancelled call ended after %s with %+v, want an error within 20 s", time.Since(start), line)
			}
			before := len(s.polls(code))
			must(t, "polling continues after the cancellation", func() bool { return len(s.polls(code)) > before })

			newPerson(t).approve(page, protocol+"@example.org")
			checkLinked(t, w, a.wait(second))
			checkLinked(t, w, a.call("completeAuthLink", map[string]any{"deviceCode": code}))
			if n := recorded(w, `"account.linked"`); n != 1 {
				t.Errorf("%d account.linked events, want 1", n)
			}
		})
	}
}

// The wait is limited, and an approval is not lost even if the only waiting call has timed out.
func TestCompleteAuthLink_WaitIsClamped(t *testing.T) {
	t.Parallel()
	b := startBackend(t, "")
	s := newSpy(t, b.url)
	w := newWorld(t, "", "SERVICE_BACKEND_URL="+s.url)
	a := startAgent(w, "modern", false)
	code, page := ask(t, a)
	start := time.Now()
	wantError(t, a.call("completeAuthLink", map[string]any{"deviceCode": code, "maxWaitSeconds": 0,
		"pollIntervalSeconds": 1}), "auth_timeout", true)
	if took := time.Since(start); took < 900*time.Millisecond || took > 20*time.Second {
		t.Errorf("a wait of 0 s lasted %s, want the minimum of 1 s", took)
	}
	newPerson(t).approve(page, "late@example.org")
	must(t, "the daemon links without a call", func() bool { _, _, exit := w.ctl("whoami"); return exit == 0 })
	linked := a.call("completeAuthLink", map[string]any{"deviceCode": code, "maxWaitSeconds": -5})
	checkLinked(t, w, linked)

	other := newWorld(t, "", "SERVICE_BACKEND_URL="+s.url)
	slow, _ := askByHand(other)
	out, _, exit := other.ctl("tool", "call", "completeAuthLink",
		`{"deviceCode":"`+slow+`","maxWaitSeconds":3,"pollIntervalSeconds":31}`)
	if exit != 1 || !strings.Contains(out, "auth_timeout") {
		t.Errorf("an interval of 31 s: exit %d, want 1 and auth_timeout: %s", exit, out)
	}
	if n := len(s.polls(slow)); n != 1 {
		t.Errorf("an interval of 31 s, limited to 30 s, caused %d polls in 3 s, want 1", n)
	}
}
