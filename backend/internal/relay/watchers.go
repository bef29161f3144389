package relay

import (
	"context"
	"slices"
	"sync"

	"github.com/service-dev/service/backend/internal/limit"
	"github.com/service-dev/service/backend/internal/sessions"
)

// watcherBounds limits the callers that wait for rows, in this process and for each account.
var watcherBounds = limit.Bounds{Running: 2000, RunningEach: 100}

// watchers are the callers that wait for rows, by session.
type watchers struct {
	slots *limit.Slots // slots by account
	mu    sync.Mutex
	woken map[string][]chan struct{}
}

// Watch returns a channel that receives a value after each commit of rows of an account's session, and when the hub
// closes. The caller must call stop. Watch returns sessions.ErrTooManyWaiters if too many callers wait already.
func (h *Hub) Watch(accountID, sessionID string) (woken <-chan struct{}, stop func(), err error) {
	w := &h.watchers
	leave, err := w.slots.Enter(h.life, accountID) // never waits
	if err != nil {
		return nil, nil, sessions.ErrTooManyWaiters
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	wake := make(chan struct{}, 1)
	w.woken[sessionID] = append(w.woken[sessionID], wake)
	stopAfter := context.AfterFunc(h.life, func() { notify(wake) })
	return wake, func() {
		leave()
		stopAfter()
		w.remove(sessionID, wake)
	}, nil
}

func (w *watchers) remove(sessionID string, wake chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.woken[sessionID] = slices.DeleteFunc(w.woken[sessionID], func(other chan struct{}) bool { return other == wake })
	if len(w.woken[sessionID]) == 0 {
		delete(w.woken, sessionID)
	}
}

// wake wakes the callers that wait for rows of a session.
func (w *watchers) wake(sessionID string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, wake := range w.woken[sessionID] {
		notify(wake)
	}
}

func notify(wake chan struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}
