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
	// handover is how long a daemon of the service manager waits for one that a client had started: it sees within a
	// moment (look) that its sockets were replaced, and finishes what it has begun.
	handover = 25 * time.Second
	// glance is how long any other daemon waits: clients find out whether the lock is held by taking it for a moment, and a
	// daemon that is ending lets go of it in one.
	glance = 500 * time.Millisecond
	// knock is how often both look whether the directory is free.
	knock = 50 * time.Millisecond
)

// Listeners are sockets that the service manager made and keeps, by path.
type Listeners = map[string]*net.UnixListener

// Notifier hears how the daemon is: the service manager (osservice.Notifier). nil is allowed.
type Notifier interface {
	Ready()
	Waiting(what string)
	Stopping(why string)
	Alive(now time.Time)
}

// silent is the Notifier of a daemon that no service manager started.
type silent struct{}

func (silent) Ready()          {}
func (silent) Waiting(string)  {}
func (silent) Stopping(string) {}
func (silent) Alive(time.Time) {}

// await takes the lock. A managed daemon lets a daemon before it end; any other waits for a moment only.
func (h *hold) await(ctx context.Context, o Options) (got bool, err error) {
	got, err = h.lock.TryLock()
	if got || err != nil {
		return got, err
	}
	limit := glance
	if o.Managed {
		limit = handover
		o.Notify.Waiting("waiting for the daemon before it to end")
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	got, err = h.lock.TryLockContext(ctx, knock)
	if errors.Is(err, context.DeadlineExceeded) {
		return false, nil
	}
	return got, err
}

// adopt takes a socket of the service manager when clients find it at its path. If its file was deleted or replaced,
// nobody can reach it: then the daemon makes one of its own.
func (h *hold) adopt(path string) net.Listener {
	l := h.given[path]
	if l == nil {
		return nil
	}
	info, err := os.Lstat(path)
	if err != nil || info.Mode()&os.ModeSocket == 0 || !answered(path) {
		return nil
	}
	h.sockets[path] = info
	h.activated = true
	return l
}

// answered tells whether anybody listens at path. We hold the lock, so it is the service manager.
func answered(path string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	if err != nil {
		return errors.Is(err, syscall.EAGAIN) // its queue is full
	}
	_ = conn.Close()
	return true
}

// isGiven tells a socket of the service manager from one of the daemon's own.
func (h *hold) isGiven(path string) bool {
	l := h.given[path]
	return l != nil && (h.Control == net.Listener(l) || h.MCP == net.Listener(l))
}

// dismiss closes what was given and was not taken.
func (h *hold) dismiss() {
	for path, l := range h.given {
		if !h.isGiven(path) {
			_ = l.Close()
		}
	}
}
