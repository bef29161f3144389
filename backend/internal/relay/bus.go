package relay

import (
	"slices"
	"sync"
)

// audience is the side of a session that a message is sent to.
type audience int

const (
	toApps audience = iota
	toPages
	toWatchers // callers that wait for rows of the log
)

// delivery accepts a message and must not block. It returns nil, or a channel that is closed once the receiver has
// caught up. The sender of a stream may wait for that channel.
type delivery func(m message) (relieved <-chan struct{})

// Bus carries encoded frames from the sender's process to the receivers' processes.
type Bus interface {
	// Publish returns the channel of one of the receivers that lag behind, or nil if none does.
	Publish(session string, to audience, m message) (relieved <-chan struct{})
	Subscribe(session string, to audience, deliver delivery) (cancel func())
	Close()
}

type topic struct {
	session string
	to      audience
}

type subscription struct{ deliver delivery }

// localBus is a Bus within one process.
type localBus struct {
	mu   sync.RWMutex
	subs map[topic][]*subscription
}

func newLocalBus() *localBus { return &localBus{subs: map[topic][]*subscription{}} }

func (b *localBus) Publish(session string, to audience, m message) <-chan struct{} {
	b.mu.RLock()
	defer b.mu.RUnlock()
	var relieved <-chan struct{}
	for _, s := range b.subs[topic{session, to}] {
		if r := s.deliver(m); r != nil {
			relieved = r
		}
	}
	return relieved
}

func (b *localBus) Subscribe(session string, to audience, deliver delivery) func() {
	t, s := topic{session, to}, &subscription{deliver}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.subs[t] = append(b.subs[t], s)
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.subs[t] = slices.DeleteFunc(b.subs[t], func(other *subscription) bool { return other == s })
		if len(b.subs[t]) == 0 {
			delete(b.subs, t)
		}
	}
}

func (b *localBus) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.subs)
}
