package relay

import (
	"context"

	"github.com/service-dev/service/backend/internal/sessions"
)

// maxWatchers is how many callers in this process may wait for rows.
const maxWatchers = 2000

// Watch returns a channel that receives a value after each commit of rows of a session, and when the hub closes. The
// caller must call stop. The error is sessions.ErrTooManyWaiters.
func (h *Hub) Watch(sessionID string) (woken <-chan struct{}, stop func(), err error) {
	if h.watchers.Add(1) > maxWatchers {
		h.watchers.Add(-1)
		return nil, nil, sessions.ErrTooManyWaiters
	}
	wake := make(chan struct{}, 1)
	notify := func() {
		select {
		case wake <- struct{}{}:
		default:
		}
	}
	cancel := h.bus.Subscribe(sessionID, toWatchers, func(message) <-chan struct{} {
		notify()
		return nil
	})
	stopAfter := context.AfterFunc(h.life, notify)
	return wake, func() {
		cancel()
		stopAfter()
		h.watchers.Add(-1)
	}, nil
}
