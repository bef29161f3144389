package host

import (
	"slices"
	"sync/atomic"

	"github.com/service-dev/service/glasses/host/websocket"
)

// List contains the peers of one kind that are attached to a session, the newest last. The session's lock guards
// changes. Reading needs no lock.
type List[P interface {
	comparable
	Receiver
}] struct {
	peers atomic.Pointer[[]P] // replaced, never modified
}

// All returns the peers. The caller must not change the slice.
func (l *List[P]) All() []P {
	if peers := l.peers.Load(); peers != nil {
		return *peers
	}
	return nil
}

// Len returns the number of peers.
func (l *List[P]) Len() int { return len(l.All()) }

// Add adds a peer.
func (l *List[P]) Add(peer P) {
	peers := append(slices.Clip(slices.Clone(l.All())), peer)
	l.peers.Store(&peers)
}

// Remove removes a peer.
func (l *List[P]) Remove(peer P) {
	peers := slices.DeleteFunc(slices.Clone(l.All()), func(other P) bool { return other == peer })
	l.peers.Store(&peers)
}

// Send sends a message to every peer. If any peer lags behind, it returns a channel that is closed when one such peer
// catches up, so that the sender of a stream can wait. Otherwise it returns nil.
func (l *List[P]) Send(m Message) (relieved <-chan struct{}) {
	for _, peer := range l.All() {
		if r := peer.Send(m); r != nil {
			relieved = r
		}
	}
	return relieved
}

// End closes the connection of every peer after sending its queued frames.
func (l *List[P]) End(code websocket.Status, reason string) {
	for _, peer := range l.All() {
		peer.End(code, reason)
	}
}
