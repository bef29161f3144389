// Package descriptors keeps the daemon within its limit on open files. It computes how many connections are possible.
// It also reserves one descriptor, so that a client above that number still receives the reason for its refusal.
package descriptors

import (
	"net"
	"os"
	"sync"
	"time"
)

// own is the number of descriptors that the daemon itself needs for state files, the log, adapters and the connections
// of apps.
const own = 40

// fewest is the minimum number of connections, regardless of the limit.
const fewest = 4

// Share returns how many connections a socket may have. This is the smaller of usual and percent of the descriptors
// that remain under the limit on open files.
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

// NewReserve reserves a descriptor. If none is free, a later call of Fill reserves it.
func NewReserve() *Reserve {
	r := &Reserve{}
	r.Fill()
	return r
}

// Fill reserves a descriptor again if the reserved one was used and another is free.
func (r *Reserve) Fill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fill()
}

func (r *Reserve) fill() {
	if r.file == nil {
		r.file, _ = os.Open(os.DevNull) // nil if no descriptor is free
	}
}

// deadliner is a listener that supports a deadline for Accept.
type deadliner interface {
	SetDeadline(time.Time) error
}

// acceptWait is how long Accept of a Reserve waits for a connection. There may be none, because an accept without a
// free descriptor fails before the system checks for a connection.
const acceptWait = 50 * time.Millisecond

// Accept uses the reserve to accept a connection after an accept failed with err because no descriptor was free. It
// returns nil if err has another cause or if no client is waiting. After the connection is closed, Fill reserves a
// descriptor again.
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
