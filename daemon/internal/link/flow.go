package link

import (
	"context"
	"errors"
	"os"
	"runtime"
	"time"

	"github.com/service-dev/service/daemon/internal/account"
	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
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

	gated    *GatedCall
	interval time.Duration // the backend's
	wanted   time.Duration // the least that a caller asked for
	count    int           // polls made
	note     string
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
// most 600 s (design D17).
func backendInterval(d time.Duration) time.Duration {
	if d < time.Second {
		return DefaultInterval
	}
	return min(d, MaxWait)
}

// bounded applies the bounds of spec 4.2.
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
// ends at once and the polling goes on. An outcome is remembered. Errors are *backend.Problem with a code of spec 7.2,
// or ctx's.
func (m *Manager) Complete(ctx context.Context, who caller.Caller, deviceCode string, wait Wait) (Outcome, error) {
	wait = wait.bounded()
	if deviceCode == "" || len(deviceCode) > maxDeviceCode {
		return Outcome{}, unknownCode()
	}
	f, err := m.flowOf(who, deviceCode)
	if err != nil {
		return Outcome{}, err
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

// maxDeviceCode bounds a device code, in bytes.
const maxDeviceCode = 512

// flowOf finds the flow of a code. A code that this daemon did not see issued (it was restarted, say) is polled at the
// caller's backend.
func (m *Manager) flowOf(who caller.Caller, deviceCode string) (*flow, error) {
	var expired []*flow
	defer func() { m.recordExpired(expired) }() // after the lock is given back
	m.mu.Lock()
	defer m.mu.Unlock()
	if f := m.flows[deviceCode]; f != nil && !f.exclusive {
		return f, nil
	}
	address, err := m.addressOf(who)
	if err != nil {
		return nil, err
	}
	f := m.newFlow(who, backend.DeviceCode{DeviceCode: deviceCode}, backend.Target{BaseURL: address, Requester: requester(who)})
	f.interval = time.Second // unknown until the first answer; the caller's own interval holds
	expired = m.keep(f)
	return f, nil
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

func requester(who caller.Caller) backend.Requester {
	host, _ := os.Hostname()
	return backend.Requester{Host: host, OS: runtime.GOOS + "/" + runtime.GOARCH, Client: who.Client}
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
