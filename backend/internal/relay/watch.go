package relay

import (
	"context"

	"github.com/service-dev/service/backend/internal/sessions"
)

// maxWatches bounds how many wait for rows at once in this process.
const maxWatches = 2000

// Watch gives a channel that gets a value after each commit of rows of a session, and when the hub closes. stop must be
// called. The error is sessions.ErrTooManyWaiters.
func (h *Hub) Watch(sessionID string) (woken <-chan struct{}, stop func(), err error) {
	if h.watched.Add(1) > maxWatches {
		h.watched.Add(-1)
		return nil, nil, sessions.ErrTooManyWaiters
	}
	wake := make(chan struct{}, 1)
	ring := func() {
		select {
		case wake <- struct{}{}:
		default:
		}
	}
	cancel := h.bus.Subscribe(sessionID, toWatchers, func(message) <-chan struct{} {
		ring()
		return nil
	})
	quiet := context.AfterFunc(h.life, ring)
	return wake, func() {
		cancel()
		quiet()
		h.watched.Add(-1)
	}, nil
}
