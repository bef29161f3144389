package gateway

import (
	"context"
	"errors"
)

// detach lets the call continue without the app. If the app's key was revoked, it returns the error for the app. If
// the app has disconnected, it returns nil.
func (t *transfer) detach(cause error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.to = nil
	if !t.ended {
		t.drain()
	}
	switch {
	case errors.Is(cause, errLeft):
		return nil
	case t.begun:
		return t.broken(cause, "")
	}
	return t.unanswered(cause)
}

// drain keeps the request to the provider running, so that an account that pays is charged for the usage that the
// provider reports. If too many answers are already being drained, it cancels the request. The caller must hold
// mu.
func (t *transfer) drain() {
	if t.hold == "" {
		t.cancel(errLeft)
		return
	}
	leave, err := t.s.drains.Enter(context.Background(), t.who.Account) // never waits
	if err != nil {
		t.cancel(errLeft)
		return
	}
	t.leave = leave
}

// end releases the call's resources.
func (t *transfer) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	if t.leave != nil {
		t.leave()
	}
	t.cancel(nil)
}

// hasLeft reports whether the app has disconnected.
func (t *transfer) hasLeft() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.to == nil
}
