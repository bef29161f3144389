package limit

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
)

func mustEnter(t *testing.T, s *Slots, key string) (leave func()) {
	t.Helper()
	leave, err := s.Enter(t.Context(), key)
	if err != nil {
		t.Fatalf("%s: %v", key, err)
	}
	return leave
}

func wantFull(t *testing.T, s *Slots, key string) {
	t.Helper()
	if _, err := s.Enter(t.Context(), key); !errors.Is(err, ErrFull) {
		t.Errorf("%s: got error %v, want ErrFull", key, err)
	}
}

func wantUnused(t *testing.T, s *Slots) {
	t.Helper()
	if running, waiting := s.Used(); running+waiting+len(s.shares) != 0 {
		t.Errorf("%d calls run, %d wait, %d keys are known; want none", running, waiting, len(s.shares))
	}
}

func TestSlots_EachKeyHasAShare(t *testing.T) {
	s := NewSlots(Bounds{Running: 3, RunningEach: 2})
	leaves := []func(){mustEnter(t, s, "ada"), mustEnter(t, s, "ada")}
	wantFull(t, s, "ada")
	leaves = append(leaves, mustEnter(t, s, "bob"))
	wantFull(t, s, "bob") // the total
	leaves[0]()
	leaves[0] = mustEnter(t, s, "bob")
	for _, leave := range leaves {
		leave()
	}
	wantUnused(t, s)
}

// Calls wait in the order of their arrival, but no call waits for another key's share.
func TestSlots_CallsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSlots(Bounds{Running: 2, RunningEach: 1, Waiting: 3, WaitingEach: 2})
		leave := mustEnter(t, s, "ada")
		var mu sync.Mutex
		var order []string
		var waits sync.WaitGroup
		wait := func(name, key string) {
			waits.Go(func() {
				leave := mustEnter(t, s, key)
				defer leave()
				mu.Lock()
				defer mu.Unlock()
				order = append(order, name)
			})
			synctest.Wait()
		}
		wait("ada's second", "ada")
		wait("ada's third", "ada")
		wantFull(t, s, "ada")
		wait("bob's", "bob")
		leave()
		waits.Wait()
		if want := []string{"bob's", "ada's second", "ada's third"}; !slices.Equal(order, want) {
			t.Errorf("calls ran in the order %q, want %q", order, want)
		}
		wantUnused(t, s)
	})
}

func TestSlots_WaitingIsBoundedInTotal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSlots(Bounds{Running: 1, RunningEach: 1, Waiting: 10, WaitingEach: 1})
		leave := mustEnter(t, s, "first")
		ctx, cancel := context.WithCancel(t.Context())
		var waits sync.WaitGroup
		for i := range 10 {
			waits.Go(func() {
				if _, err := s.Enter(ctx, strconv.Itoa(i)); !errors.Is(err, context.Canceled) {
					t.Errorf("call %d: got error %v, want that of its context", i, err)
				}
			})
		}
		synctest.Wait()
		wantFull(t, s, "another")
		cancel()
		waits.Wait()
		leave()
		wantUnused(t, s)
	})
}

// A call whose context ends at the moment of its turn gives the slot to the next one.
func TestSlots_TurnOfACallThatLeft(t *testing.T) {
	s := NewSlots(Bounds{Running: 1, RunningEach: 1, Waiting: 2, WaitingEach: 2})
	leave := mustEnter(t, s, "ada")
	left, err := s.enter("ada")
	if err != nil {
		t.Fatal(err)
	}
	next, err := s.enter("ada")
	if err != nil {
		t.Fatal(err)
	}
	leave()
	<-left.turn
	s.abandon(left)
	<-next.turn
	s.leave("ada")
	wantUnused(t, s)
}

// A call that does not need to wait runs even if its context has ended.
func TestSlots_RunWithoutWaiting(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := NewSlots(Bounds{Running: 1000, RunningEach: 1000})
	for range 1000 {
		if _, err := s.Enter(ctx, "a"); err != nil {
			t.Fatal(err)
		}
	}
}
