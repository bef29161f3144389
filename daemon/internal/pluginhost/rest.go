package pluginhost

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/service-dev/service/internal/loopback"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

const (
	// restAfter is how long an adapter must be unused before its process is stopped. It is started again when needed.
	restAfter = time.Minute
	// restWait is how long to wait until an adapter agrees or refuses to stop. restAsks is how often it is asked if it
	// does not respond in time.
	restWait = 5 * time.Second
	restAsks = 3
)

// errRests is the reason for the end of an idle process.
var errRests = errors.New("the adapter was idle")

// mayRest reports whether the adapter's process may be stopped while it is not in use. Real glasses may still have to
// be cleared after their session. An added adapter may keep state in memory, which the contract does not forbid.
func (a *adapter) mayRest() bool { return a.added == nil && a.name != RealDevice }

// watchIdle stops the process after it has been unused for a while. It returns when the process has agreed to stop or
// ctx ends.
func (a *adapter) watchIdle(ctx context.Context, inst *instance) {
	after := a.host.opts.RestAfter
	ticker := time.NewTicker(max(after/4, time.Millisecond))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if inst.idle() < after || !a.pauseCalls(inst) {
			continue
		}
		if inst.agreesToRest(ctx, after) {
			close(inst.rests) // further calls wait for the next process
			return
		}
		a.resumeCalls(inst)
	}
}

// pauseCalls makes new calls wait. It returns false if a call is in progress.
func (a *adapter) pauseCalls(inst *instance) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	inst.isPaused = inst.busy.Load() == 0
	return inst.isPaused
}

// resumeCalls continues the waiting calls.
func (a *adapter) resumeCalls(inst *instance) {
	a.mu.Lock()
	defer a.mu.Unlock()
	inst.isPaused = false
	a.setState(a.status.State)
}

// agreesToRest asks an adapter, which may have other clients, whether it may be stopped. If the response does not
// arrive in time, it asks again, because after a late yes the adapter accepts no connections.
func (i *instance) agreesToRest(ctx context.Context, idle time.Duration) bool {
	if i.rpc == nil {
		return true
	}
	for range restAsks {
		r, err := i.askToRest(ctx, idle)
		switch status.Code(err) {
		case codes.OK:
			return r.GetRests()
		case codes.Unimplemented:
			return true
		case codes.DeadlineExceeded:
		default:
			return false
		}
	}
	return false
}

func (i *instance) askToRest(ctx context.Context, idle time.Duration) (*pluginv1.RestResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, restWait)
	defer cancel()
	return i.rpc.Rest(ctx, &pluginv1.RestRequest{IdleMs: uint32(idle.Milliseconds())})
}

// heldFor is how long the embedded backend's port counts as held after its file was touched. Apps try to reconnect for
// 19 s.
const heldFor = 30 * time.Second

// wasHeld reports whether the port in a file was held until recently.
func wasHeld(file string) bool {
	info, err := os.Stat(file)
	return err == nil && time.Since(info.ModTime()).Abs() <= heldFor
}

// AwaitConnections opens the embedded backend's address at the start if the backend has served before, so that waiting
// pages and apps can connect after a restart of the daemon. It has no effect where an idle adapter cannot be stopped,
// or if another program uses the address.
func (h *Host) AwaitConnections(ctx context.Context) {
	a, dir := h.adapters[Local], filepath.Join(h.opts.ConfigDir, embeddedDir)
	if h.unavailable != nil || !wasHeld(filepath.Join(dir, portFile)) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.status.State != Stopped || a.life.Err() != nil {
		return
	}
	kept := loopback.ReadPort(filepath.Join(dir, portFile))
	listeners, err := a.address.open(ctx, dir)
	closeFiles(listeners)
	if err != nil || len(listeners) == 0 || a.address.port() != kept {
		a.address.close()
		return
	}
	a.setState(Starting) // until the address is watched
	h.supervisors.Go(func() {
		if a.rest(a.life) {
			a.supervise(a.life)
			return
		}
		a.address.close()
		a.setStopped()
	})
}

// rest waits until a call or a connection needs a new process. It returns false if ctx ends first.
func (a *adapter) rest(ctx context.Context) bool {
	a.host.opts.Log.Info("idle adapter stopped", "adapter", a.name)
	connected, cancel := context.WithCancel(ctx)
	defer cancel()
	a.mu.Lock()
	a.inst, a.status.PID, a.wake = nil, 0, cancel
	a.setState(Stopped)
	a.mu.Unlock()
	debug.FreeOSMemory() // the daemon is usually idle now, and the garbage collector would keep the memory
	a.address.wait(connected)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.wake = nil
	if ctx.Err() != nil {
		return false
	}
	if a.status.State == Stopped { // a connection is waiting; a call would have changed the state itself
		a.setState(Starting)
	}
	return true
}
