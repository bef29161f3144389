package app

import (
	"net"
	"net/http"
	"sync"
	"time"
)

// connUsage records when the server's HTTP connections were last in use. It ignores WebSockets, which the hub tracks.
type connUsage struct {
	mu   sync.Mutex
	busy map[net.Conn]struct{} // connections with a request in progress, or too new to have sent one
	last time.Time             // when a connection was last in use
}

func newConnUsage() *connUsage { return &connUsage{busy: map[net.Conn]struct{}{}, last: time.Now()} }

// note records a change of a connection's state. It is the ConnState callback of an http.Server.
func (u *connUsage) note(c net.Conn, state http.ConnState) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if state == http.StateNew || state == http.StateActive {
		u.busy[c] = struct{}{}
	} else if _, ok := u.busy[c]; ok {
		delete(u.busy, c)
	} else { // an idle connection was closed
		return
	}
	u.last = time.Now()
}

// touch records that a connection was in use until now.
func (u *connUsage) touch() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.last = time.Now()
}

// idle returns the time since a connection was last in use, or 0 while one is.
func (u *connUsage) idle() time.Duration {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.busy) > 0 {
		return 0
	}
	return time.Since(u.last)
}
