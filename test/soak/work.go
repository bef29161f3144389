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

// soak is the state of one run: the machine, its clients and the faults.
type soak struct {
	*testbed
	options
	activeFaults activeFaults
	stderrLog    stderrLog
	agents       []*agent
	workers      []*worker
	terminals    []*terminal
	gateway      gateway
}

// random returns the random source for one part of a run. The same seed repeats the choices of each part.
func (s *soak) random(part uint64) *rand.Rand { return rand.New(rand.NewPCG(s.seed, part)) }

// checkOutcome counts an outcome and checks that it is explained by the faults that may have affected the call.
func (s *soak) checkOutcome(client, call, outcome string, since time.Time, detail any) bool {
	s.results.answered(call, outcome)
	if outcome == ok {
		return true
	}
	if !s.activeFaults.explains(outcome, since) {
		s.results.report("%s: %s gave %q after %s under %s: %.300s", client, call, outcome,
			time.Since(since).Round(time.Millisecond), s.activeFaults.names(since), fmt.Sprint(detail))
	}
	return false
}

// identity is what a client reports about its link.
type identity struct {
	InstallID string
	State     string
	AccountID string
}

// linkOutcome compares a client's report with the actual link.
func (s *soak) linkOutcome(by string, w identity) string {
	switch {
	case w.InstallID != s.install:
		s.results.report("%s: the install is %q, was %q", by, w.InstallID, s.install)
		return ok
	case w.State != "linked":
		return "link:" + w.State
	case w.AccountID == s.account:
		return ok
	case w.AccountID == s.foreigner:
		return "link:other_account"
	}
	s.results.report("%s: account %q, which is nobody's", by, w.AccountID)
	return ok
}

// worker is an agent with its state.
type worker struct {
	*soak
	a   *agent
	rng *rand.Rand
	n   int
	// browser is the id of the project's browser session; empty before it has one.
	browser string
	local   localLog
	// address is the address where apps attach to the local session.
	address atomic.Pointer[appAddress]
	// app is attached to the browser session; nil for most workers. requests holds the ids of its rows that have been
	// read from the log.
	app          *app
	browserSince int64
	requests     map[string]int
}

// appAddress is an app endpoint and the file with its secret.
type appAddress struct{ endpoint, tokenFile string }

// localEndpoint returns the app endpoint of the local session, or empty strings if there is no session.
func (h *worker) localEndpoint() (endpoint, tokenFile string) {
	if a := h.address.Load(); a != nil {
		return a.endpoint, a.tokenFile
	}
	return "", ""
}

// work calls tools until ctx ends.
func (h *worker) work(ctx context.Context) {
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

// call makes one call and reports it if it gets no response.
func (h *worker) call(tool string, args map[string]any) (answer map[string]any, outcome string) {
	answer, outcome, err := h.a.call(tool, args)
	if err != nil {
		h.results.report("%s: %s: %v", h.a.name, tool, err)
		return nil, ""
	}
	return answer, outcome
}

// capabilities lists arguments that also appear in their results, so that swapped results are detected.
var capabilities = []string{"display", "camera", "microphone", "speech"}

// together makes several calls concurrently. Each must get its own result.
func (h *worker) together(n int) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			if i%2 == 0 {
				h.whoAmI()
				return
			}
			since, want := time.Now(), capabilities[i%len(capabilities)]
			answer, outcome := h.call("getCapabilityGuide", map[string]any{"capability": want})
			if outcome != "" && h.checkOutcome(h.a.name, "getCapabilityGuide", outcome, since, answer) &&
				answer["capability"] != want {
				h.results.report("%s: asked about %s, the answer is about %v", h.a.name, want, answer["capability"])
			}
		})
	}
	all.Wait()
}

func (h *worker) whoAmI() {
	since := time.Now()
	answer, outcome := h.call("whoAmI", map[string]any{})
	if outcome == "" {
		return
	}
	if outcome == ok {
		outcome = h.linkOutcome(h.a.name, identity{text(answer, "installId"), text(answer, "state"),
			text(answer, "accountId")})
	}
	h.checkOutcome(h.a.name, "whoAmI", outcome, since, answer)
}

func text(answer map[string]any, field string) string {
	s, _ := answer[field].(string)
	return s
}

// browserSession requests the project's session, which stays the same as long as the account does not change.
func (h *worker) browserSession() {
	since := time.Now()
	project := fmt.Sprintf("com.example.soak%d", h.n)
	answer, outcome := h.call("createSimulatorSession", map[string]any{"project": project, "openBrowser": false})
	if outcome == "" || !h.checkOutcome(h.a.name, "createSimulatorSession", outcome, since, answer) {
		return
	}
	id := text(answer, "sessionId")
	switch {
	case id == "" || text(answer, "project") != project:
		h.results.report("%s: the session for %s is %q of %v", h.a.name, project, id, answer["project"])
	case h.activeFaults.explains("link:other_account", since):
		// The other account has its own session.
	case h.browser == "":
		h.browser = id
		if h.app != nil {
			h.app.take(text(answer, "appEndpoint"), text(answer, "appTokenFile"))
		}
	case h.browser != id:
		h.results.report("%s: the session of %s is %s, was %s", h.a.name, project, id, h.browser)
	}
}
