package link

import (
	"context"
	"maps"
	"os"
	"runtime"
	"time"

	"github.com/service-dev/service/daemon/internal/account"
	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/codes"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/internal/secretscan"
	"github.com/service-dev/service/proto/telemetry"
)

// flow is the state of one device code. The fields below target are guarded by the manager's mu.
type flow struct {
	code    backend.DeviceCode
	target  backend.Target
	expires time.Time
	// who is the caller that requested the code. The caller's telemetry opt-outs apply to the flow's events.
	who caller.Caller
	// exclusive is set for the flow of a login: other callers do not join the flow, and it ends with the login.
	exclusive bool
	// replace allows the login to replace a live link to another account or backend.
	replace bool

	gated          *GatedCall
	interval       time.Duration // as requested by the backend
	minInterval    time.Duration // the shortest interval that a caller requested
	count          int           // polls made
	note           string
	intervalRaised bool // the backend raised the interval because its clock showed that a poll was too early
	polling        bool
	stop           context.CancelFunc
	answerLost     bool          // a lost response may have contained the approval
	polled         chan struct{} // closed after each poll
	finished       time.Time
	end            *result
	saving         bool // the token is being saved, so the flow can no longer be stopped
	cancelled      bool // the backend was asked to cancel the code
	aborted        bool // polling_aborted was recorded for the code
	opening        bool // the page is being opened
	opened         bool // the page was opened in a browser
}

// result is the outcome of one run of polls. Its fields are set before done is closed and never change afterwards. A
// waiter thus gets the result of its own run even if the flow was restarted.
type result struct {
	done    chan struct{}
	outcome Outcome
	err     error
}

func newResult() *result { return &result{done: make(chan struct{})} }

func (m *Manager) newFlow(who caller.Caller, code backend.DeviceCode, target backend.Target) *flow {
	if code.ExpiresIn <= 0 {
		code.ExpiresIn = DefaultWindow
	}
	code.ExpiresIn = min(code.ExpiresIn, codes.MaxWindow)
	target.Bearer, target.InstallID = "", m.InstallID // the new flow must not use a rejected token
	return &flow{
		who: who, code: code, target: target, expires: m.Now().Add(code.ExpiresIn),
		interval: backendInterval(code.PollInterval),
		polled:   make(chan struct{}), end: newResult(),
	}
}

// isUsable reports whether the user may still approve the code.
func (f *flow) isUsable(now time.Time) bool {
	return f.finished.IsZero() && now.Before(f.expires.Add(-min(f.code.ExpiresIn/10, 15*time.Second)))
}

// isOver reports whether the flow can be removed.
func (f *flow) isOver(now time.Time) bool {
	if f.polling {
		return false
	}
	if f.finished.IsZero() {
		return now.Sub(f.expires) > remember
	}
	return now.Sub(f.finished) > remember
}

// bounded returns w clamped to the documented bounds.
func (w Wait) bounded() Wait {
	if w.Max == 0 {
		w.Max = DefaultWait
	}
	w.Max = min(max(w.Max, time.Second), MaxWait)
	if w.Interval == 0 {
		w.Interval = DefaultInterval
	}
	w.Interval = min(max(w.Interval, time.Second), MaxInterval)
	return w
}

// Complete waits for the approval of a code. It starts polling the code, or joins the running poller. When ctx ends,
// the call ends and the polling continues. Complete keeps outcomes for later calls. It returns a *problem.Error, or
// ctx's error.
func (m *Manager) Complete(ctx context.Context, who caller.Caller, deviceCode string, wait Wait) (Outcome, error) {
	wait = wait.bounded()
	if deviceCode == "" || len(deviceCode) > maxDeviceCode {
		return Outcome{}, foreignCode()
	}
	f, err := m.flowOf(who, deviceCode)
	if err != nil {
		return Outcome{}, err
	}
	m.supersede(ctx, f)
	var out Outcome
	// Report the conflict before the wait, so that the user does not approve the code in vain.
	if other, ok := m.conflictingLinkAt(ctx, f.target.BaseURL); ok && m.pending(f) {
		err = conflict(other)
	} else if err = m.ensurePolling(f, wait.Interval); err == nil {
		start := m.Now()
		m.openFor(ctx, deviceCode, wait)
		out, err = m.await(ctx, f, start, wait)
	}
	if err != nil && m.pending(f) {
		m.completed(f, telemetry.OutcomePollingAborted) // a later call or poll may record another outcome
	}
	if err == nil && out.File.Written && m.Accounts.For(out.BackendURL).State == account.NotLinked {
		return Outcome{}, unknownCode() // the code created a link that has since been logged out
	}
	return out, err
}

// openFor opens a code's page for a call that waits for the code, within the call's time limit.
func (m *Manager) openFor(ctx context.Context, deviceCode string, wait Wait) {
	if wait.OpenPage == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, wait.Max)
	defer cancel()
	m.OpenPage(deviceCode, false, func(page string) bool { return wait.OpenPage(ctx, page) })
}

// pending reports whether a flow has no outcome yet.
func (m *Manager) pending(f *flow) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return f.finished.IsZero()
}

// maxDeviceCode is the maximum length of a device code, in bytes.
const maxDeviceCode = 512

// flowOf returns the flow of a code. If the code was not issued to this install, flowOf refuses it without asking a
// backend. Such a code may belong to another user, whose account its approval would link here.
func (m *Manager) flowOf(who caller.Caller, deviceCode string) (*flow, error) {
	m.mu.Lock()
	f := m.flows[deviceCode]
	m.mu.Unlock()
	switch {
	case f == nil:
		return m.restoreFlow(who, deviceCode)
	case f.exclusive:
		return nil, foreignCode()
	}
	return f, nil
}

// restoreFlow returns the flow of a code that was issued before the daemon started.
func (m *Manager) restoreFlow(who caller.Caller, deviceCode string) (*flow, error) {
	issued, ok, err := m.Codes.Find(deviceCode)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, foreignCode()
	}
	f := m.newFlow(who, backend.DeviceCode{DeviceCode: deviceCode, VerificationURL: issued.Page},
		backend.Target{BaseURL: issued.Backend, Requester: requester(who)})
	f.expires, f.aborted, f.opened = issued.Expires, issued.Aborted, issued.Opened
	if c := issued.Call; c != nil {
		f.gated = &GatedCall{Tool: c.Tool, Args: c.Args, Caller: m.callerAt(who, c.Cwd, issued.Backend)}
	}
	m.mu.Lock()
	if other := m.flows[deviceCode]; other != nil { // another caller restored it concurrently
		m.mu.Unlock()
		return other, nil
	}
	expired := m.keep(f)
	m.mu.Unlock()
	m.recordExpired(expired)
	return f, nil
}

// callerAt returns a copy of who with the directory and backend of a stored call. It keeps who's other variables,
// because the original caller's environment was never stored.
func (m *Manager) callerAt(who caller.Caller, cwd, backendURL string) caller.Caller {
	who.Cwd = cwd
	if address, err := m.addressOf(who); err == nil && liveKey(address) == liveKey(backendURL) {
		return who
	}
	env := maps.Clone(who.Env)
	if env == nil {
		env = map[string]string{}
	}
	env["SERVICE_BACKEND_URL"] = liveKey(backendURL)
	who.Env = env
	return who
}

// remember stores a code, so that it survives a restart of the daemon. If storing fails, the code works until the
// daemon exits.
func (m *Manager) remember(code Code, gated GatedCall) {
	err := m.Codes.Put(code.DeviceCode.DeviceCode, codes.Issued{
		Backend: code.BackendURL, Expires: m.Now().Add(code.ExpiresIn), Page: code.VerificationURL,
		Call: &codes.Call{Tool: gated.Tool, Args: gated.Args, Cwd: gated.Caller.Cwd},
	})
	if err != nil {
		m.Log.Warn("failed to save the issued device code", "err", err)
	}
}

// updateCode changes the stored data of a flow's code.
func (m *Manager) updateCode(f *flow, change func(*codes.Issued)) {
	if err := m.Codes.Update(f.code.DeviceCode, change); err != nil {
		m.Log.Warn("failed to update a stored device code", "err", err)
	}
}

// OpenPage calls open with the approval page of a device code and returns its result. It returns false without calling
// open in three cases: the code cannot be used, its page is being opened, or its page was opened before and again is
// false.
func (m *Manager) OpenPage(deviceCode string, again bool, open func(page string) bool) bool {
	m.mu.Lock()
	f := m.flows[deviceCode]
	if f == nil || f.exclusive || f.code.VerificationURL == "" || f.opening || f.opened && !again ||
		!f.isUsable(m.Now()) {
		m.mu.Unlock()
		return false
	}
	f.opening = true
	m.mu.Unlock()
	opened := open(f.code.VerificationURL)
	m.mu.Lock()
	first := opened && !f.opened
	f.opening, f.opened = false, f.opened || opened
	m.mu.Unlock()
	if first {
		m.updateCode(f, func(i *codes.Issued) { i.Opened = true })
	}
	return opened
}

// await waits for the outcome and reports each poll. It returns when the caller's time limit, counted from start, is
// reached.
func (m *Manager) await(ctx context.Context, f *flow, start time.Time, wait Wait) (Outcome, error) {
	limit := time.NewTimer(wait.Max - m.Now().Sub(start))
	defer limit.Stop()
	m.mu.Lock()
	end := f.end
	m.mu.Unlock()
	alive := time.NewTicker(heartbeat)
	defer alive.Stop()
	for {
		m.mu.Lock()
		polled, count, note := f.polled, f.count, f.note
		m.mu.Unlock()
		if wait.OnPoll != nil && count > 0 && !closed(end.done) {
			remaining := min(wait.Max-m.Now().Sub(start), f.expires.Sub(m.Now()))
			wait.OnPoll(PollEvent{PollCount: count, Remaining: max(remaining, 0), Note: note})
		}
		select {
		case <-end.done:
			return end.outcome, end.err
		case <-polled:
		case <-alive.C:
		case <-ctx.Done():
			return Outcome{}, ctx.Err()
		case <-limit.C:
			return Outcome{}, timedOut(wait.Max)
		}
	}
}

// heartbeat is the maximum time between two progress reports to a waiter. Waiters need a report at least every 20 s.
const heartbeat = 15 * time.Second

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Attempt is one login. It has its own code, which is polled only during Wait.
type Attempt struct {
	m    *Manager
	f    *flow
	code Code
}

// Code returns the code to show to the user.
func (a *Attempt) Code() Code { return a.code }

// Wait polls until there is an outcome or the code can no longer be approved. It ignores wait.Max. If ctx ends first,
// the polling stops and no link is created afterwards.
func (a *Attempt) Wait(ctx context.Context, wait Wait) (Outcome, error) {
	if err := ctx.Err(); err != nil {
		a.m.abort(a.f)
		return Outcome{}, err
	}
	wait = wait.bounded()
	wait.Max = a.f.code.ExpiresIn + overtime + pollTimeout // longer than the poller runs
	if err := a.m.ensurePolling(a.f, wait.Interval); err != nil {
		a.m.abort(a.f)
		return Outcome{}, err
	}
	out, err := a.m.await(ctx, a.f, a.m.Now(), wait)
	if asProblem(err).Code != problem.CodeAuthTimeout && ctx.Err() == nil {
		return out, err
	}
	a.m.abort(a.f)
	if a.f.end.err == nil { // the approval was already being saved
		return a.f.end.outcome, nil
	}
	return Outcome{}, err
}

// abort ends a login's flow permanently and cancels its code if the flow has no outcome.
func (m *Manager) abort(f *flow) {
	m.mu.Lock()
	if f.polling && !f.saving {
		f.stop()
	}
	idle := !f.polling
	m.mu.Unlock()
	if idle {
		m.finish(f, Outcome{}, aborted("the login was cancelled"), telemetry.OutcomePollingAborted)
	}
	<-f.end.done
	if asProblem(f.end.err).Code == problem.CodePollingAborted {
		m.cancelCode(f)
	}
}

// requester describes the requester for the activation page. It omits a client name that looks like a credential.
func requester(who caller.Caller) backend.Requester {
	host, _ := os.Hostname()
	r := backend.Requester{Host: host, OS: runtime.GOOS + "/" + runtime.GOARCH, Client: who.Client}
	if secretscan.Contains(r.Client) || secretscan.ContainsUserCode(r.Client) {
		r.Client = ""
	}
	return r
}
