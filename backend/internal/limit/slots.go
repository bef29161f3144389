package limit

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// ErrFull is returned if too many calls run or wait already, in total or with the same key.
var ErrFull = errors.New("too many calls at the same time")

// Bounds are the limits of Slots: in total, and for each key.
type Bounds struct {
	Running, RunningEach int
	Waiting, WaitingEach int // 0 means that no call waits
}

// Slots limits how many calls run at the same time and how many wait to run. A key, such as an account or an address,
// can use only its share of them.
type Slots struct {
	Bounds

	mu      sync.Mutex
	running int
	waiting []*waiter         // waiting calls in order of arrival
	shares  map[string]*share // running and waiting calls by key
}

type share struct{ running, waiting int }

type waiter struct {
	key  string
	turn chan struct{} // closed once the call may run
}

// NewSlots returns Slots with these bounds.
func NewSlots(b Bounds) *Slots { return &Slots{Bounds: b, shares: map[string]*share{}} }

// Enter waits until a call with this key may run. The caller must then call leave once. Enter returns ErrFull if too
// many calls are already waiting, and an error if ctx ends while it waits.
func (s *Slots) Enter(ctx context.Context, key string) (leave func(), err error) {
	w, err := s.enter(key)
	if err != nil {
		return nil, err
	}
	select {
	case <-w.turn: // takes precedence if ctx has ended too
		return func() { s.leave(key) }, nil
	default:
	}
	select {
	case <-w.turn:
		return func() { s.leave(key) }, nil
	case <-ctx.Done():
		s.abandon(w)
		return nil, ctx.Err()
	}
}

// enter adds a call. If the call may run now, its turn is already closed.
func (s *Slots) enter(key string) (*waiter, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &waiter{key: key, turn: make(chan struct{})}
	own := s.shares[key]
	if own == nil {
		own = &share{}
	}
	switch {
	case s.fits(own):
		s.run(w, own)
	case len(s.waiting) < s.Waiting && own.waiting < s.WaitingEach:
		own.waiting++
		s.waiting = append(s.waiting, w)
	default:
		return nil, ErrFull
	}
	s.shares[key] = own
	return w, nil
}

func (s *Slots) fits(own *share) bool { return s.running < s.Running && own.running < s.RunningEach }

func (s *Slots) run(w *waiter, own *share) {
	s.running++
	own.running++
	close(w.turn)
}

func (s *Slots) leave(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
	s.shares[key].running--
	s.forget(key)
	s.waiting = slices.DeleteFunc(s.waiting, func(w *waiter) bool {
		own := s.shares[w.key]
		if !s.fits(own) {
			return false
		}
		own.waiting--
		s.run(w, own)
		return true
	})
}

// abandon removes a call that stopped waiting. Its turn may have come in the meantime.
func (s *Slots) abandon(w *waiter) {
	s.mu.Lock()
	at := slices.Index(s.waiting, w)
	if at < 0 {
		s.mu.Unlock()
		s.leave(w.key)
		return
	}
	defer s.mu.Unlock()
	s.waiting = slices.Delete(s.waiting, at, at+1)
	s.shares[w.key].waiting--
	s.forget(w.key)
}

func (s *Slots) forget(key string) {
	if *s.shares[key] == (share{}) {
		delete(s.shares, key)
	}
}

// Used returns the number of running and of waiting calls.
func (s *Slots) Used() (running, waiting int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running, len(s.waiting)
}
