package pluginhost

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/service-dev/service/daemon/internal/backend"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

// The states of an adapter, as `servicectl plugin list` shows them.
const (
	Stopped  = "stopped"
	Starting = "starting"
	Running  = "running"
	Backoff  = "backoff"
	Refused  = "refused"
)

// Rules of supervision.
const (
	firstPause   = 100 * time.Millisecond
	longestPause = 10 * time.Second
	// breakerCrashes within breakerWindow open the breaker: no start for breakerPause.
	breakerCrashes = 5
	breakerWindow  = time.Minute
	breakerPause   = time.Minute
	// shortPause is how long a call waits for an adapter that is about to be started again.
	shortPause = time.Second
)

// adapter supervises one binary. Its goroutine, started by the first call, owns the process; the other fields are
// guarded by mu, and every change of state closes changed.
type adapter struct {
	name  string
	path  string
	start func(ctx context.Context, a *adapter) (*instance, error)
	now   func() time.Time
	life  context.Context
	owner *sync.WaitGroup
	// probeEvery and probeWait are the host's options.
	probeEvery, probeWait time.Duration
	mu                    sync.Mutex
	status                PluginStatus
	// inst is set while running.
	inst    *instance
	crashes []time.Time
	// lasting is why it does not start, when the adapter said that this does not pass by itself.
	lasting *backend.Problem
	refused error     // why the file was refused, in the state Refused
	resume  time.Time // when the present pause ends; monotonic, for a clock that is moved must not prolong it
	changed chan struct{}
	pauses  *backoff.ExponentialBackOff
}

func newAdapter(h *Host, name, path string) *adapter {
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval, pauses.MaxInterval = firstPause, longestPause
	return &adapter{
		name: name, path: path, start: h.launch, now: h.now, life: h.life, owner: &h.owner,
		probeEvery: h.opts.ProbeEvery, probeWait: h.opts.ProbeWait,
		status:  PluginStatus{Name: name, Path: path, State: Stopped},
		changed: make(chan struct{}),
		pauses:  pauses,
	}
}

// set changes the state and wakes whoever waits for it. mu must be held.
func (a *adapter) set(state string) {
	a.status.State = state
	close(a.changed)
	a.changed = make(chan struct{})
}

// get returns the running instance, starting the adapter when it is not. It waits for a start that is under way, but
// not for a long pause after crashes. The error is a *backend.Problem or ctx's own.
func (a *adapter) get(ctx context.Context) (*instance, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	begun := false
	for {
		switch a.status.State {
		case Running:
			return a.inst, nil
		case Stopped, Refused:
			if begun {
				return nil, a.unavailable()
			}
			if a.life.Err() != nil {
				return nil, unavailable(a.name, "the daemon is stopping", 0)
			}
			begun = true
			a.set(Starting)
			a.owner.Go(func() { a.supervise(a.life) })
		case Backoff:
			if time.Until(a.resume) > shortPause {
				return nil, a.unavailable()
			}
		}
		changed := a.changed
		a.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			a.mu.Lock()
			return nil, ctx.Err()
		}
		a.mu.Lock()
	}
}

// supervise runs the adapter until the host stops or the file is refused.
func (a *adapter) supervise(ctx context.Context) {
	for {
		inst, err := a.start(ctx, a)
		if ctx.Err() != nil {
			if inst != nil {
				inst.stop()
			}
			a.stopped()
			return
		}
		var r *refusal
		if errors.As(err, &r) {
			a.refuse(r)
			return
		}
		if err == nil {
			a.running(inst)
			err = a.tend(ctx, inst)
			if ctx.Err() != nil {
				a.stopped()
				return
			}
		}
		if !a.pause(ctx, err) {
			a.stopped()
			return
		}
	}
}

// tend returns why the running process is no more. It watches it, and ends it when it is stuck or ctx ends.
func (a *adapter) tend(ctx context.Context, inst *instance) error {
	watching, cancel := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { inst.watch(watching, a.probeEvery, a.probeWait) })
	err := inst.wait(ctx)
	cancel()
	watch.Wait()
	inst.stop()
	return err
}

func (a *adapter) running(inst *instance) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.inst, a.lasting = inst, nil
	a.status.PID, a.status.Version, a.status.Verified = inst.pid(), inst.about.GetVersion(), true
	a.status.Since, a.status.Resume = a.now(), time.Time{}
	a.set(Running)
}

func (a *adapter) stopped() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.inst, a.status.PID = nil, 0
	a.set(Stopped)
}

func (a *adapter) refuse(r *refusal) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.inst, a.status.PID, a.status.Verified, a.status.LastError = nil, 0, false, r.reason
	a.refused = r
	a.set(Refused)
}

// pause waits after a crash, longer each time; it returns false when the host stops meanwhile.
func (a *adapter) pause(ctx context.Context, cause error) bool {
	a.mu.Lock()
	now := a.now()
	a.crashes = append(a.crashes, now)
	for len(a.crashes) > 0 && now.Sub(a.crashes[0]) >= breakerWindow {
		a.crashes = a.crashes[1:]
	}
	if len(a.crashes) == 1 {
		a.pauses.Reset()
	}
	wait := a.pauses.NextBackOff()
	a.status.LastError, a.lasting = cause.Error(), nil
	var p *backend.Problem
	if errors.As(cause, &p) && !p.Retryable {
		a.lasting = p
	}
	if len(a.crashes) >= breakerCrashes {
		wait = breakerPause
		a.crashes = nil
		a.status.LastError = fmt.Sprintf("%d crashes within a minute, the last: %v", breakerCrashes, cause)
	}
	a.resume = time.Now().Add(wait)
	a.status.Crashed, a.status.Resume = now, now.Add(wait)
	a.inst, a.status.PID = nil, 0
	a.status.Restarts++
	a.set(Backoff)
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
	a.set(Starting)
	return true
}

// snapshot is the status now.
func (a *adapter) snapshot() PluginStatus {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.status
}

// live is the running instance, or nil; it never starts one.
func (a *adapter) live() *instance {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.status.State != Running {
		return nil
	}
	return a.inst
}

// unavailable is the problem of a call that found no running adapter. mu must be held.
func (a *adapter) unavailable() *backend.Problem {
	if a.status.State == Refused {
		return &backend.Problem{
			Code:    backend.CodeAdapterUnavailable,
			Message: fmt.Sprintf("adapter %s was not started: %s", a.name, a.status.LastError),
			FixHint: FixHint(a.refused),
		}
	}
	p := unavailable(a.name, a.status.LastError, time.Until(a.resume))
	if a.lasting != nil {
		p.Retryable, p.RetryAfter, p.FixHint = false, 0, a.lasting.FixHint
	}
	return p
}

func unavailable(name, why string, after time.Duration) *backend.Problem {
	return &backend.Problem{
		Code:       backend.CodeAdapterUnavailable,
		Message:    fmt.Sprintf("adapter %s is not running: %s", name, why),
		Retryable:  true,
		FixHint:    "Try again in a moment. `servicectl plugin list` shows the adapter, `servicectl daemon logs` why it stopped.",
		RetryAfter: max(0, after.Round(time.Second)),
	}
}

// about is what an adapter said of itself when it was started.
type about = pluginv1.DescribeResponse
