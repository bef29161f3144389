package relay

import (
	"slices"
	"sync"
)

// audience is which side of a session a message is for.
type audience int

const (
	toApps audience = iota
	toPages
	toWatchers // who waits for rows of the log
)

// delivery takes a message in and must not block. What it returns is nil, or is closed once the receiver has caught up:
// a sender of many may wait for it.
type delivery func(m message) (eased <-chan struct{})

// Bus carries encoded frames from whoever holds a sender to whoever holds the receivers.
type Bus interface {
	// Publish gives one of the receivers' words on how they get along.
	Publish(session string, to audience, m message) (eased <-chan struct{})
	Subscribe(session string, to audience, deliver delivery) (cancel func())
	Close()
}

type topic struct {
	session string
	to      audience
}

type subscription struct{ deliver delivery }

// localBus is the bus of one process.
type localBus struct {
	mu   sync.RWMutex
	subs map[topic][]*subscription
}

func newLocalBus() *localBus { return &localBus{subs: map[topic][]*subscription{}} }

func (b *localBus) Publish(session string, to audience, m message) <-chan struct{} {
	b.mu.RLock()
	defer b.mu.RUnlock()
	var eased <-chan struct{}
	for _, s := range b.subs[topic{session, to}] {
		if e := s.deliver(m); e != nil {
			eased = e
		}
	}
	return eased
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
