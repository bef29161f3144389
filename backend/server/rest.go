package server

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"github.com/service-dev/service/internal/loopback"
)

// Rest reports whether the backend may be stopped until it is needed again, because it was idle for at least this
// long. If so, it stops accepting connections, which then wait in the daemon's listeners. Otherwise it accepts
// connections, even if an earlier call returned true.
func (s *Server) Rest(ctx context.Context, idle time.Duration) (bool, error) {
	// A restart would choose another sign-in word and sign out all browsers.
	if len(s.pausable) == 0 || s.word != "" {
		return false, nil
	}
	rests, err := s.pauseIdle(ctx, idle)
	if !rests {
		for _, l := range s.pausable {
			l.resume()
		}
	}
	return rests, err
}

// pauseIdle pauses the listeners if the backend is idle. It reports whether the backend is still idle afterwards,
// because a connection may have been accepted in the meantime.
func (s *Server) pauseIdle(ctx context.Context, idle time.Duration) (bool, error) {
	if since, err := s.app.Idle(ctx); err != nil || since < idle {
		return false, err
	}
	for _, l := range s.pausable {
		l.pause()
	}
	since, err := s.app.Idle(ctx)
	return err == nil && since >= idle, err
}

// listen returns the daemon's listeners. If there are none, the backend listens itself, on the port or, if that is in
// use, on another one. pausable is set only for the daemon's listeners.
func listen(ctx context.Context, o Options, port int) (all []net.Listener, pausable []*pausableListener, err error) {
	if len(o.Listeners) == 0 {
		all, err = loopback.Listen(ctx, port)
		return all, nil, err
	}
	for _, l := range o.Listeners {
		p := &pausableListener{TCPListener: l}
		p.changed.L = &p.mu
		all, pausable = append(all, p), append(pausable, p)
	}
	return all, pausable, nil
}

// pausableListener is a listener that can stop accepting connections without closing.
type pausableListener struct {
	*net.TCPListener

	mu      sync.Mutex
	changed sync.Cond // uses mu
	paused  bool
	waiting bool // Accept is waiting for the end of the pause
	closed  bool
}

// Accept implements net.Listener.
func (l *pausableListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.TCPListener.Accept()
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return conn, err
		}
		l.mu.Lock()
		l.waiting = true
		l.changed.Broadcast()
		for l.paused && !l.closed {
			l.changed.Wait()
		}
		l.waiting = false
		l.mu.Unlock()
	}
}

// pause returns once no more connections are accepted and the caller of Accept has recorded the earlier ones.
func (l *pausableListener) pause() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.paused = true
	_ = l.SetDeadline(time.Unix(1, 0))
	for !l.waiting && !l.closed {
		l.changed.Wait()
	}
}

// resume ends a pause.
func (l *pausableListener) resume() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.paused = false
	_ = l.SetDeadline(time.Time{})
	l.changed.Broadcast()
}

// Close implements net.Listener.
func (l *pausableListener) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.changed.Broadcast()
	return l.TCPListener.Close()
}
