package relay

import "sync"

// audience is which side of a session a message is for.
type audience int

const (
	toApps audience = iota
	toPages
)

// Bus carries encoded frames from whoever holds a sender to whoever holds the receivers. deliver must not block.
type Bus interface {
	Publish(session string, to audience, frame []byte)
	Subscribe(session string, to audience, deliver func(frame []byte)) (cancel func())
	Close()
}

type topic struct {
	session string
	to      audience
}

type subscription struct{ deliver func([]byte) }

// localBus is the bus of one process.
type localBus struct {
	mu   sync.RWMutex
	subs map[topic]map[*subscription]struct{}
}

func newLocalBus() *localBus { return &localBus{subs: map[topic]map[*subscription]struct{}{}} }

func (b *localBus) Publish(session string, to audience, frame []byte) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for s := range b.subs[topic{session, to}] {
		s.deliver(frame)
	}
}

func (b *localBus) Subscribe(session string, to audience, deliver func([]byte)) func() {
	t, s := topic{session, to}, &subscription{deliver}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.subs[t] == nil {
		b.subs[t] = map[*subscription]struct{}{}
	}
	b.subs[t][s] = struct{}{}
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.subs[t], s)
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
