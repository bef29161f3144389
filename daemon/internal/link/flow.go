package link

import (
	"context"
	"errors"
	"maps"
	"os"
	"runtime"
	"time"

	"github.com/service-dev/service/daemon/internal/account"
	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/codes"
	"github.com/service-dev/service/proto/secretscan"
	"github.com/service-dev/service/proto/telemetry"
)

// flow is one device code. Everything below target is guarded by the manager's mu.
type flow struct {
	code    backend.DeviceCode
	target  backend.Target
	expires time.Time
	// who asked for the code: their switches decide about the events of the flow.
	who caller.Caller
	// exclusive flows are a login's: nobody else joins them, and they end with it.
	exclusive bool
	// replace allows that a live link of another account or backend is replaced.
	replace bool

	gated    *GatedCall
	interval time.Duration // the backend's
	wanted   time.Duration // the least that a caller asked for
	count    int           // polls made
	note     string
	raised   bool // the backend raised the interval, so a poll came too early by its clock
	polling  bool
	stop     context.CancelFunc
	trouble  bool          // a poll's answer was lost, so an approval may have been too
	beat     chan struct{} // closed after each poll
	finished time.Time
	end      *ending
	saving   bool // the token is being saved: too late to stop
}

// ending is how one run of polls ended. Its fields are set before done is closed and never change after that, so that
// a waiter reads the ending it waited for even when the flow has been started again.
type ending struct {
	done    chan struct{}
	outcome Outcome
	err     error
}

func newEnding() *ending { return &ending{done: make(chan struct{})} }

func (m *Manager) newFlow(who caller.Caller, code backend.DeviceCode, target backend.Target) *flow {
	if code.ExpiresIn <= 0 || code.ExpiresIn > MaxWait {
		code.ExpiresIn = MaxWait
	}
	target.Bearer, target.InstallID = "", m.InstallID // a refused token has no place in the flow that replaces it
	return &flow{
		who: who, code: code, target: target, expires: m.Now().Add(code.ExpiresIn), interval: backendInterval(code.PollInterval),
		beat: make(chan struct{}), end: newEnding(),
	}
}

// paced is the gap to the next poll by our clock, which may run faster than the backend's: a little longer than the
// interval, and clearly longer once the backend found a poll too early. One raise is then the last for a clock that is
// up to 30 % fast.
func (f *flow) paced() time.Duration {
	if f.raised {
		return f.interval + f.interval*35/100
	}
	return f.interval + f.interval/20
}

// usable tells whether the code can still be shown to a person.
func (f *flow) usable(now time.Time) bool {
	return f.finished.IsZero() && now.Before(f.expires.Add(-min(f.code.ExpiresIn/10, 15*time.Second)))
}

// over tells whether nobody will ask for the flow any more.
func (f *flow) over(now time.Time) bool {
	if f.polling {
		return false
	}
	if f.finished.IsZero() {
		return now.Sub(f.expires) > remember
	}
	return now.Sub(f.finished) > remember
}

// backendInterval is what the client honours of the backend's interval: 5 s when it is missing or makes no sense, at
// most 600 s.
func backendInterval(d time.Duration) time.Duration {
	if d < time.Second {
		return DefaultInterval
	}
	return min(d, MaxWait)
}

// bounded returns w within the documented bounds.
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

// Complete waits for the approval of a code. It joins the polling of the code or starts it; when ctx ends, the call
// ends at once and the polling goes on. An outcome is remembered. Errors are *backend.Problem or
// ctx's.
func (m *Manager) Complete(ctx context.Context, who caller.Caller, deviceCode string, wait Wait) (Outcome, error) {
	wait = wait.bounded()
	if deviceCode == "" || len(deviceCode) > maxDeviceCode {
		return Outcome{}, foreignCode()
	}
	f, err := m.flowOf(who, deviceCode)
	if err != nil {
		return Outcome{}, err
	}
	if rival, ok := m.rivalAt(ctx, f.target.BaseURL); ok && m.pending(f) { // before the person approves in vain
		return Outcome{}, conflict(rival)
	}
	if err := m.ensurePolling(f, wait.Interval); err != nil {
		return Outcome{}, err
	}
	out, err := m.await(ctx, f, wait)
	if err == nil && out.File.Written && m.Accounts.For(out.BackendURL).State == account.NotLinked {
		return Outcome{}, unknownCode() // linked once, logged out since
	}
	return out, err
}

// pending reports whether a flow has no outcome yet.
func (m *Manager) pending(f *flow) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return f.finished.IsZero()
}

// maxDeviceCode bounds a device code, in bytes.
const maxDeviceCode = 512

// flowOf finds the flow of a code. A code that was not issued to this install is somebody else's: approving it would
// link their account here, so it is refused without asking any backend.
func (m *Manager) flowOf(who caller.Caller, deviceCode string) (*flow, error) {
	m.mu.Lock()
	f := m.flows[deviceCode]
	m.mu.Unlock()
	switch {
	case f == nil:
		return m.recall(who, deviceCode)
	case f.exclusive:
		return nil, foreignCode()
	}
	return f, nil
}

// recall makes the flow of a code that was issued before the daemon was started.
func (m *Manager) recall(who caller.Caller, deviceCode string) (*flow, error) {
	issued, ok, err := m.Codes.Find(deviceCode)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, foreignCode()
	}
	f := m.newFlow(who, backend.DeviceCode{DeviceCode: deviceCode}, backend.Target{BaseURL: issued.Backend, Requester: requester(who)})
	f.expires = issued.Expires
	if c := issued.Call; c != nil {
		f.gated = &GatedCall{Tool: c.Tool, Args: c.Args, Caller: m.callerAt(who, c.Cwd, issued.Backend)}
	}
	m.mu.Lock()
	if other := m.flows[deviceCode]; other != nil { // two callers recalled it at once
		m.mu.Unlock()
		return other, nil
	}
	expired := m.keep(f)
	m.mu.Unlock()
	m.recordExpired(expired)
	return f, nil
}

// callerAt is who calls, in the directory and at the backend of a remembered call. The environment of its own caller was
// never stored.
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

// remember keeps a code beyond the life of the daemon. Without it the code works until the daemon ends.
func (m *Manager) remember(code Code, gated GatedCall) {
	err := m.Codes.Put(code.DeviceCode.DeviceCode, codes.Issued{
		Backend: code.BackendURL, Expires: m.Now().Add(code.ExpiresIn),
		Call: &codes.Call{Tool: gated.Tool, Args: gated.Args, Cwd: gated.Caller.Cwd},
	})
	if err != nil {
		m.Log.Warn("failed to save the issued device code", "err", err)
	}
}

// await waits for the outcome, tells of each poll, and gives up at the caller's own limit.
func (m *Manager) await(ctx context.Context, f *flow, wait Wait) (Outcome, error) {
	start := m.Now()
	limit := time.NewTimer(wait.Max)
	defer limit.Stop()
	m.mu.Lock()
	end := f.end
	m.mu.Unlock()
	alive := time.NewTicker(heartbeat)
	defer alive.Stop()
	for {
		m.mu.Lock()
		beat, count, note := f.beat, f.count, f.note
		m.mu.Unlock()
		if wait.OnPoll != nil && count > 0 && !closed(end.done) {
			wait.OnPoll(PollEvent{PollCount: count, Remaining: max(wait.Max-m.Now().Sub(start), 0), Note: note})
		}
		select {
		case <-end.done:
			return end.outcome, end.err
		case <-beat:
		case <-alive.C:
		case <-ctx.Done():
			return Outcome{}, ctx.Err()
		case <-limit.C:
			return Outcome{}, timedOut(wait.Max)
		}
	}
}

// heartbeat is how often a waiter hears that the wait goes on when polls are further apart (S22: within 20 s).
const heartbeat = 15 * time.Second

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Attempt is one login: a code of its own, polled only while somebody waits.
type Attempt struct {
	m    *Manager
	f    *flow
	code Code
}

// Code is what the person needs.
func (a *Attempt) Code() Code { return a.code }

// Wait polls until an outcome. When ctx ends first, the polling stops and nothing is linked afterwards.
func (a *Attempt) Wait(ctx context.Context, wait Wait) (Outcome, error) {
	if err := ctx.Err(); err != nil {
		a.m.abort(a.f)
		return Outcome{}, err
	}
	wait = wait.bounded()
	if err := a.m.ensurePolling(a.f, wait.Interval); err != nil {
		return Outcome{}, err
	}
	out, err := a.m.await(ctx, a.f, wait)
	if asProblem(err).Code != CodeAuthTimeout && ctx.Err() == nil {
		return out, err
	}
	a.m.abort(a.f)
	if a.f.end.err == nil { // the approval was being saved when the wait ended
		return a.f.end.outcome, nil
	}
	return Outcome{}, err
}

// abort ends a login's flow for good.
func (m *Manager) abort(f *flow) {
	m.mu.Lock()
	if f.polling && !f.saving {
		f.stop()
	}
	idle := !f.polling
	m.mu.Unlock()
	if idle {
		m.finish(f, Outcome{}, &backend.Problem{Code: codeAborted, Message: "the login was cancelled"}, telemetry.OutcomePollingAborted)
	}
	<-f.end.done
}

// requester is who asks, as the activation page shows it. A client that gives a credential as its name stays unnamed.
func requester(who caller.Caller) backend.Requester {
	host, _ := os.Hostname()
	r := backend.Requester{Host: host, OS: runtime.GOOS + "/" + runtime.GOARCH, Client: who.Client}
	if secretscan.Contains(r.Client) || secretscan.ContainsUserCode(r.Client) {
		r.Client = ""
	}
	return r
}

// asProblem gives the typed form of an error; never nil.
func asProblem(err error) *backend.Problem {
	var p *backend.Problem
	switch {
	case errors.As(err, &p):
		return p
	case err == nil:
		return &backend.Problem{}
	}
	return &backend.Problem{Code: backend.CodeUnreachable, Message: err.Error(), Retryable: true}
}
