// Package descriptors keeps the daemon within its limit on open files: it computes how many connections fit, and
// reserves one descriptor so that a client above that number still receives the reason for its refusal.
package descriptors

import (
	"net"
	"os"
	"sync"
	"time"
)

// own is how many descriptors the daemon needs itself: state, log, adapters, and the connections of apps.
const own = 40

// fewest is how many connections are allowed under any limit.
const fewest = 4

// Share returns how many connections a socket may have: usual, or percent of what the limit on open files leaves if
// that is less.
func Share(usual, percent int) int { return share(limit(), usual, percent) }

func share(limit, usual, percent int) int {
	if limit <= 0 {
		return usual
	}
	return min(usual, max(fewest, (limit-own)*percent/100))
}

// Reserve is a reserved descriptor. It is safe for concurrent use.
type Reserve struct {
	mu   sync.Mutex
	file *os.File
}

// NewReserve reserves a descriptor; if none is free, it does so later.
func NewReserve() *Reserve {
	r := &Reserve{}
	r.Fill()
	return r
}

// Fill reserves the descriptor again if it was spent and one is free.
func (r *Reserve) Fill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fill()
}

func (r *Reserve) fill() {
	if r.file == nil {
		r.file, _ = os.Open(os.DevNull) // nil without a free descriptor
	}
}

// deadliner is a listener whose Accept can be bounded.
type deadliner interface {
	SetDeadline(time.Time) error
}

// acceptWait bounds the wait for the connection that the reserve is spent on. There may be none, because the system
// refuses an accept before it checks for a connection.
const acceptWait = 50 * time.Millisecond

// Accept spends the reserve on a connection after an accept failed with err; nil if err has another reason, or if
// nobody is waiting. Fill reserves the descriptor again once the connection is closed.
func (r *Reserve) Accept(l net.Listener, err error) net.Conn {
	bounded, ok := l.(deadliner)
	if !ok || !Exhausted(err) {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fill()
	if r.file == nil || bounded.SetDeadline(time.Now().Add(acceptWait)) != nil {
		return nil
	}
	_ = r.file.Close()
	r.file = nil
	conn, err := l.Accept()
	_ = bounded.SetDeadline(time.Time{})
	if err != nil {
		r.fill()
		return nil
	}
	return conn
}
