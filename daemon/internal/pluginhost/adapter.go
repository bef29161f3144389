package pluginhost

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/internal/problem"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

// States of an adapter, as shown by `servicectl plugin list`.
const (
	Stopped  = "stopped"
	Starting = "starting"
	Running  = "running"
	Backoff  = "backoff"
	Refused  = "refused"
)

// Limits of supervision.
const (
	minBackoff = 100 * time.Millisecond
	maxBackoff = 10 * time.Second
	// After breakerCrashes within breakerWindow, the adapter is not started for breakerPause (circuit breaker).
	breakerCrashes = 5
	breakerWindow  = time.Minute
	breakerPause   = time.Minute
	// maxCallDelay is the longest backoff that a call waits for.
	maxCallDelay = time.Second
)

// adapter supervises the process of one adapter. The first call starts its goroutine, which owns the process. mu guards
// the fields below it. Every change of state closes changed.
type adapter struct {
	name string
	host *Host
	// added is set for an adapter that the user added. Such an adapter receives no account data.
	added   *addedAdapter
	address address         // of the embedded backend; used only by supervise
	life    context.Context // ends with the host, or when an added adapter is removed
	end     context.CancelFunc

	mu     sync.Mutex
	status PluginStatus
	about  *backend.Transport // latest description of a transport adapter; nil for a backend adapter
	inst   *instance          // set while the adapter runs
	// described is the adapter's description. It is set while the adapter is running or stopped because it is idle.
	described *pluginv1.DescribeResponse
	wake      func() // makes rest return; set while the adapter is stopped because it is idle
	crashes   []time.Time
	// permanent is the problem reported by an adapter that cannot start, if a retry would not help.
	permanent *problem.Error
	refused   error     // why the file was refused; set in the state Refused
	resume    time.Time // end of the backoff; monotonic, so that setting the clock does not prolong it
	changed   chan struct{}
	backoff   *backoff.ExponentialBackOff
}

func newAdapter(h *Host, name string) *adapter {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval = minBackoff, maxBackoff
	a := &adapter{
		name: name, host: h, status: PluginStatus{Name: name, State: Stopped}, changed: make(chan struct{}), backoff: b,
	}
	a.life, a.end = context.WithCancel(h.life)
	return a
}

// isTransport reports whether the adapter provides glasses.
func (a *adapter) isTransport() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.about != nil
}

// setState changes the state and wakes all waiters. The caller holds mu.
func (a *adapter) setState(state string) {
	a.status.State = state
	close(a.changed)
	a.changed = make(chan struct{})
}

// get returns the running instance, starting the adapter if necessary. It waits for a start in progress, but not for a
// long backoff. The idle adapter is not stopped until the caller has called done. get returns a *problem.Error, or
// ctx's error.
func (a *adapter) get(ctx context.Context) (inst *instance, done func(), err error) {
	if a.host.unavailable != nil {
		return nil, nil, a.host.unavailable
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	begun := false
	for {
		switch a.status.State {
		case Running:
			if !a.inst.isPaused {
				return a.inst, a.inst.use(), nil
			}
		case Stopped, Refused:
			if a.life.Err() != nil {
				return nil, nil, unavailable(a.name, "it is being stopped", 0)
			}
			if begun && a.status.State == Refused { // the idle adapter may have been stopped in the meantime
				return nil, nil, a.unavailable()
			}
			begun = true
			a.setState(Starting)
			if a.wake != nil {
				a.wake()
			} else {
				a.host.supervisors.Go(func() { a.supervise(a.life) })
			}
		case Backoff:
			if time.Until(a.resume) > maxCallDelay {
				return nil, nil, a.unavailable()
			}
		}
		changed := a.changed
		a.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			a.mu.Lock()
			return nil, nil, ctx.Err()
		}
		a.mu.Lock()
	}
}

// supervise runs the adapter until the host stops or the adapter's file is refused. It stops an idle adapter until its
// next use.
func (a *adapter) supervise(ctx context.Context) {
	for {
		inst, err := a.host.launch(ctx, a)
		var r *refusal
		switch {
		case errors.As(err, &r):
			a.address.close()
			a.setRefused(r)
			return
		case err == nil:
			a.setRunning(inst)
			err = a.monitor(ctx, inst)
		}
		if ctx.Err() != nil || !a.pause(ctx, err) {
			a.address.close()
			a.setStopped()
			return
		}
	}
}

// pause waits after the process has ended. It returns true when the adapter should be started again, and false if ctx
// ends first.
func (a *adapter) pause(ctx context.Context, cause error) bool {
	if errors.Is(cause, errRests) {
		return a.rest(ctx)
	}
	return a.backOff(ctx, cause)
}

// monitor waits for the process to end and returns the reason. It stops the process if the process is stuck, if it has
// agreed to stop because it is idle, or if ctx ends.
func (a *adapter) monitor(ctx context.Context, inst *instance) error {
	watching, cancel := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { inst.watch(watching, a.host.opts.ProbeEvery, a.host.opts.ProbeWait) })
	if a.mayRest() {
		watch.Go(func() { a.watchIdle(watching, inst) })
	}
	err := inst.wait(ctx)
	cancel()
	watch.Wait()
	inst.stop()
	return err
}

func (a *adapter) setRunning(inst *instance) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.inst, a.described, a.permanent = inst, inst.about, nil
	if inst.describes != nil {
		a.about = inst.describes
	}
	a.status.PID, a.status.Version, a.status.Verified = inst.pid(), inst.about.GetVersion(), true
	a.status.Since, a.status.Resume = a.host.now(), time.Time{}
	a.setState(Running)
}

func (a *adapter) setStopped() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.inst, a.described, a.status.PID = nil, nil, 0
	a.setState(Stopped)
}

func (a *adapter) setRefused(r *refusal) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.inst, a.described, a.status.PID, a.status.Verified, a.status.LastError = nil, nil, 0, false, r.reason
	a.refused = r
	a.setState(Refused)
}

// backOff waits after a crash, longer after each one. It returns false if the host stops in the meantime.
func (a *adapter) backOff(ctx context.Context, cause error) bool {
	a.mu.Lock()
	now := a.host.now()
	a.crashes = slices.DeleteFunc(append(a.crashes, now), func(at time.Time) bool { return now.Sub(at) >= breakerWindow })
	if len(a.crashes) == 1 {
		a.backoff.Reset()
	}
	wait := a.backoff.NextBackOff()
	a.status.LastError, a.permanent = cause.Error(), nil
	var p *problem.Error
	if errors.As(cause, &p) && !p.Retryable {
		a.permanent = p
	}
	if len(a.crashes) >= breakerCrashes {
		wait = breakerPause
		a.crashes = nil
		a.address.close() // a client would not wait that long for a connection
		a.status.LastError = fmt.Sprintf("%d crashes within a minute, the last one: %v", breakerCrashes, cause)
	}
	a.resume = time.Now().Add(wait)
	a.status.Crashed, a.status.Resume = now, now.Add(wait)
	a.inst, a.described, a.status.PID = nil, nil, 0
	a.status.Restarts++
	a.setState(Backoff)
	a.mu.Unlock()

	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.status.Resume = time.Time{}
	a.setState(Starting)
	return true
}

// stop ends a removed adapter and waits for its process.
func (a *adapter) stop() {
	a.end()
	a.mu.Lock()
	defer a.mu.Unlock()
	for a.status.State != Stopped && a.status.State != Refused {
		changed := a.changed
		a.mu.Unlock()
		<-changed // closed eventually, because supervise ends with life
		a.mu.Lock()
	}
}

func (a *adapter) snapshot() PluginStatus {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.status
	if a.host.unavailable == nil {
		s.Path = a.file()
	}
	if a.added != nil {
		s.Added, s.SHA256, s.Owner, s.Title = a.added.AddedAt, a.added.SHA256, a.added.Owner, a.added.Title
	}
	return s
}

// transport returns the description of a transport adapter.
func (a *adapter) transport() backend.Transport {
	a.mu.Lock()
	defer a.mu.Unlock()
	return *a.about
}

// running returns the running instance, or nil. It never starts one.
func (a *adapter) running() *instance {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.status.State != Running {
		return nil
	}
	return a.inst
}

// unavailable returns the problem of a call whose adapter is not running. The caller holds mu.
func (a *adapter) unavailable() *problem.Error {
	if a.status.State == Refused && IsUpgrading(a.refused) {
		return &problem.Error{
			Code:      problem.CodeAdapterUnavailable,
			Message:   fmt.Sprintf("adapter %s does not start while an upgrade is being installed: %s", a.name, a.status.LastError),
			FixHint:   FixHint(a.refused),
			Retryable: true, RetryAfter: upgradePause,
		}
	}
	if a.status.State == Refused {
		return &problem.Error{
			Code:    problem.CodeAdapterUnavailable,
			Message: fmt.Sprintf("adapter %s was not started: %s", a.name, a.status.LastError),
			FixHint: FixHint(a.refused),
		}
	}
	p := unavailable(a.name, a.status.LastError, time.Until(a.resume))
	if a.permanent != nil {
		p.Retryable, p.RetryAfter, p.FixHint = false, 0, a.permanent.FixHint
	}
	return p
}

func unavailable(name, why string, after time.Duration) *problem.Error {
	return &problem.Error{
		Code:      problem.CodeAdapterUnavailable,
		Message:   fmt.Sprintf("adapter %s is not running: %s", name, why),
		Retryable: true,
		FixHint: "Try again in a moment. `servicectl plugin list` shows the adapter, `servicectl daemon logs` why it " +
			"stopped.",
		RetryAfter: max(0, after.Round(time.Second)),
	}
}
