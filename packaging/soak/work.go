//go:build linux

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// soak is one run: the machine, who works on it, and what befalls it.
type soak struct {
	*world
	options
	weather weather
	words   words
	agents  []*agent
	working []*shim
	typing  []*terminal
}

// random is the source of one part of a run; the same seed gives each part the same choices again.
func (s *soak) random(part uint64) *rand.Rand { return rand.New(rand.NewPCG(s.seed, part)) }

// judge counts an outcome and holds it against the faults that the call may have felt.
func (s *soak) judge(who, call, outcome string, since time.Time, detail any) bool {
	s.ledger.answered(call, outcome)
	if outcome == ok {
		return true
	}
	if !s.weather.explains(outcome, since) {
		s.ledger.find("%s: %s gave %q after %s under %s: %.300s", who, call, outcome,
			time.Since(since).Round(time.Millisecond), s.weather.names(since), fmt.Sprint(detail))
	}
	return false
}

// who is what any face says about the link.
type who struct {
	InstallID string
	State     string
	AccountID string
}

// linkOutcome compares what a face says with what is true.
func (s *soak) linkOutcome(by string, w who) string {
	switch {
	case w.InstallID != s.install:
		s.ledger.find("%s: the install is %q, was %q", by, w.InstallID, s.install)
		return ok
	case w.State != "linked":
		return "link:" + w.State
	case w.AccountID == s.account:
		return ok
	case w.AccountID == s.foreigner:
		return "link:other_account"
	}
	s.ledger.find("%s: account %q, which is nobody's", by, w.AccountID)
	return ok
}

// shim is an agent at work.
type shim struct {
	*soak
	a   *agent
	rng *rand.Rand
	n   int
	// browser is the session of its project, once it has one.
	browser string
	local   localLog
	// address is where apps attach to the local session.
	address atomic.Pointer[appAddress]
	// app is attached to the browser session; nil for most. requests are its rows in the log so far, by id.
	app          *app
	browserSince int64
	requests     map[string]int
}

// appAddress is an address of apps and the file with its secret.
type appAddress struct{ endpoint, tokenFile string }

// localEndpoint is where apps attach to the local session; empty while it has none.
func (h *shim) localEndpoint() (endpoint, tokenFile string) {
	if a := h.address.Load(); a != nil {
		return a.endpoint, a.tokenFile
	}
	return "", ""
}

// work calls tools until ctx ends.
func (h *shim) work(ctx context.Context) {
	for ctx.Err() == nil {
		switch d := h.rng.IntN(100); {
		case d < 40:
			h.together(1 + h.rng.IntN(4))
		case d < 55:
			h.browserSession()
		case d < 60 && h.app != nil && h.browser != "":
			h.readBrowser()
		default:
			h.localSession()
		}
		pause(ctx, time.Duration(20+h.rng.IntN(120))*time.Millisecond)
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// call is one call that was answered, or a finding.
func (h *shim) call(tool string, args map[string]any) (answer map[string]any, outcome string) {
	answer, outcome, err := h.a.call(tool, args)
	if err != nil {
		h.ledger.find("%s: %s: %v", h.a.name, tool, err)
		return nil, ""
	}
	return answer, outcome
}

// capabilities are arguments whose answers name them, so that a mix-up of answers shows.
var capabilities = []string{"display", "camera", "microphone", "speech"}

// together asks several things at once, each of which is answered by its own answer.
func (h *shim) together(n int) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			if i%2 == 0 {
				h.whoAmI()
				return
			}
			since, want := time.Now(), capabilities[i%len(capabilities)]
			answer, outcome := h.call("getCapabilityGuide", map[string]any{"capability": want})
			if outcome != "" && h.judge(h.a.name, "getCapabilityGuide", outcome, since, answer) && answer["capability"] != want {
				h.ledger.find("%s: asked about %s, the answer is about %v", h.a.name, want, answer["capability"])
			}
		})
	}
	all.Wait()
}

func (h *shim) whoAmI() {
	since := time.Now()
	answer, outcome := h.call("whoAmI", map[string]any{})
	if outcome == "" {
		return
	}
	if outcome == ok {
		outcome = h.linkOutcome(h.a.name, who{text(answer, "installId"), text(answer, "state"), text(answer, "accountId")})
	}
	h.judge(h.a.name, "whoAmI", outcome, since, answer)
}

func text(answer map[string]any, field string) string {
	s, _ := answer[field].(string)
	return s
}

// browserSession asks for the project's session: the same one each time, as long as the account is.
func (h *shim) browserSession() {
	since := time.Now()
	project := fmt.Sprintf("com.example.soak%d", h.n)
	answer, outcome := h.call("createSimulatorSession", map[string]any{"project": project, "openBrowser": false})
	if outcome == "" || !h.judge(h.a.name, "createSimulatorSession", outcome, since, answer) {
		return
	}
	id := text(answer, "sessionId")
	switch {
	case id == "" || text(answer, "project") != project:
		h.ledger.find("%s: the session for %s is %q of %v", h.a.name, project, id, answer["project"])
	case h.weather.explains("link:other_account", since):
		// another person's session is theirs
	case h.browser == "":
		h.browser = id
		if h.app != nil {
			h.app.take(text(answer, "appEndpoint"), text(answer, "appTokenFile"))
		}
	case h.browser != id:
		h.ledger.find("%s: the session of %s is %s, was %s", h.a.name, project, id, h.browser)
	}
}
