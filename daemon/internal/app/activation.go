package app

import (
	"context"
	"errors"
	"net"
	"os"
	"syscall"
	"time"
)

const (
	// handoverWait is how long the service manager's daemon waits for a client's daemon to stop. The client's daemon
	// notices within watchInterval that its sockets were replaced, and finishes its work.
	handoverWait = 25 * time.Second
	// lockWait is how long any other daemon waits. Clients hold the lock briefly to test it, and a stopping daemon
	// soon releases it.
	lockWait = 500 * time.Millisecond
	// lockPoll is the interval between attempts to take the lock.
	lockPoll = 50 * time.Millisecond
)

// Listeners maps paths to sockets that the service manager created and owns.
type Listeners = map[string]*net.UnixListener

// Notifier reports the daemon's state to the service manager (supervised.Notifier). It may be nil.
type Notifier interface {
	Ready()
	Waiting(what string)
	Stopping(why string)
	Alive(now time.Time)
}

// noopNotifier is the Notifier of a daemon that no service manager started.
type noopNotifier struct{}

func (noopNotifier) Ready()          {}
func (noopNotifier) Waiting(string)  {}
func (noopNotifier) Stopping(string) {}
func (noopNotifier) Alive(time.Time) {}

// await acquires the lock. A managed daemon waits up to handoverWait for its predecessor to stop, any other daemon up
// to lockWait.
func (h *instance) await(ctx context.Context, o Options) (got bool, err error) {
	got, err = h.lock.TryLock()
	if got || err != nil {
		return got, err
	}
	limit := lockWait
	if o.Managed {
		limit = handoverWait
		o.Notify.Waiting("waiting for the previous daemon to exit")
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	got, err = h.lock.TryLockContext(ctx, lockPoll)
	if errors.Is(err, context.DeadlineExceeded) {
		return false, nil
	}
	return got, err
}

// adopt returns the service manager's socket for path if clients can reach it there, or nil. If the socket file was
// deleted or replaced, clients cannot connect to the socket, so the daemon creates its own.
func (h *instance) adopt(path string) net.Listener {
	l := h.inherited[path]
	if l == nil {
		return nil
	}
	info, err := os.Lstat(path)
	if err != nil || info.Mode()&os.ModeSocket == 0 || !isListening(path) {
		return nil
	}
	h.sockets[path] = info
	h.activated = true
	return l
}

// isListening reports whether a process listens at path. Because the caller holds the lock, that process is the service
// manager.
func isListening(path string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	if err != nil {
		return errors.Is(err, syscall.EAGAIN) // the listener's queue is full
	}
	_ = conn.Close()
	return true
}

// isActivated reports whether this daemon uses the service manager's socket at path.
func (h *instance) isActivated(path string) bool {
	l := h.inherited[path]
	return l != nil && (h.Control == net.Listener(l) || h.MCP == net.Listener(l))
}

// closeUnused closes the service manager's sockets that this daemon does not use.
func (h *instance) closeUnused() {
	for path, l := range h.inherited {
		if !h.isActivated(path) {
			_ = l.Close()
		}
	}
}
