package link

import (
	"context"
	"errors"
	"os"
	"runtime"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
)

// flow is one device code. Everything below target is guarded by the manager's mu.
type flow struct {
	code    backend.DeviceCode
	target  backend.Target
	expires time.Time
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
	done     chan struct{} // closed at the outcome
	finished time.Time
	outcome  Outcome
	err      error
}

func (m *Manager) newFlow(code backend.DeviceCode, target backend.Target) *flow {
	if code.ExpiresIn <= 0 || code.ExpiresIn > MaxWait {
		code.ExpiresIn = MaxWait
	}
	return &flow{
		code: code, target: target, expires: m.Now().Add(code.ExpiresIn), interval: backendInterval(code.PollInterval),
		beat: make(chan struct{}), done: make(chan struct{}),
	}
}

// usable tells whether the code can still be shown to a person.
func (f *flow) usable(now time.Time) bool { return f.finished.IsZero() && now.Before(f.expires) }

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
	f, err := m.flowOf(who, deviceCode)
	if err != nil {
		return Outcome{}, err
	}
	if err := m.ensurePolling(f, wait.Interval); err != nil {
		return Outcome{}, err
	}
	return m.await(ctx, f, wait)
}

// flowOf finds the flow of a code. A code that this daemon did not see issued (it was restarted, say) is polled at the
// caller's backend.
func (m *Manager) flowOf(who caller.Caller, deviceCode string) (*flow, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f := m.flows[deviceCode]; f != nil && !f.exclusive {
		return f, nil
	}
	address, err := m.addressOf(who)
	if err != nil {
		return nil, err
	}
	f := m.newFlow(backend.DeviceCode{DeviceCode: deviceCode}, backend.Target{BaseURL: address, Requester: requester(who)})
	f.interval = time.Second // unknown until the first answer; the caller's own interval holds
	m.keep(f)
	return f, nil
}

// await waits for the outcome, tells of each poll, and gives up at the caller's own limit.
func (m *Manager) await(ctx context.Context, f *flow, wait Wait) (Outcome, error) {
	start := m.Now()
	limit := time.NewTimer(wait.Max)
	defer limit.Stop()
	for {
		m.mu.Lock()
		beat, count, note, done := f.beat, f.count, f.note, f.done
		m.mu.Unlock()
		if wait.OnPoll != nil && count > 0 && !closed(done) {
			wait.OnPoll(PollEvent{PollCount: count, Remaining: max(wait.Max-m.Now().Sub(start), 0), Note: note})
		}
		select {
		case <-done:
			m.mu.Lock()
			defer m.mu.Unlock()
			return f.outcome, f.err
		case <-beat:
		case <-ctx.Done():
			return Outcome{}, ctx.Err()
		case <-limit.C:
			return Outcome{}, timedOut(wait.Max)
		}
	}
}

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
	if asProblem(err).Code == CodeAuthTimeout || ctx.Err() != nil {
		a.m.abort(a.f)
	}
	return out, err
}

// abort ends a login's flow for good.
func (m *Manager) abort(f *flow) {
	m.mu.Lock()
	stop := f.stop
	idle := !f.polling
	m.mu.Unlock()
	if stop != nil {
		stop()
	}
	if idle {
		m.finish(f, Outcome{}, &backend.Problem{Code: codeAborted, Message: "the login was cancelled"}, outcomeAborted)
	}
	<-f.done
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
