package relay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/sessions"
)

// town is a log of many sessions that remembers what it was asked.
type town struct {
	Log
	mu    sync.Mutex
	asked [][]string
	away  error
}

func (l *town) SomeSessions(_ context.Context, ids []string) (found []sessions.Session, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked = append(l.asked, ids)
	for _, id := range ids {
		found = append(found, sessions.Session{ID: id, ExpiresAt: time.Now().Add(time.Hour)})
	}
	return found, l.away
}

// arriving is a session that is revoked, and whose link's end is told, after a peer's attach has read it.
type arriving struct {
	Log
	hub   *Hub
	ended bool
}

func (l *arriving) Session(_ context.Context, id string) (sessions.Session, error) {
	l.hub.Ended("ada", "link-1")
	l.ended = true
	return sessions.Session{ID: id, Owner: sessions.Owner{AccountID: "ada", LinkID: "link-1"}, ExpiresAt: time.Now().Add(time.Hour)}, nil
}

// A peer that comes in while its link is revoked is looked at in the next round.
func TestEndedMissesNobodyWhoComesIn(t *testing.T) {
	l := &arriving{}
	h := New(Options{Log: l, Sessions: peaceful{}})
	l.hub = h
	r, _ := h.enter("ses_1")
	r.loaded = true
	go func() {
		for e := range h.queue {
			close(e.reached)
		}
	}()
	defer close(h.queue)
	if _, _, err := r.attach(t.Context(), &conn{}, toApps); err != nil || !l.ended {
		t.Fatal(err)
	}
	if due := h.enterDue(time.Now().Add(-time.Hour)); len(due) != 1 {
		t.Errorf("%d rooms are due", len(due))
	}
}

// peaceful lets every session live on.
type peaceful struct{ Sessions }

func (peaceful) Touch(context.Context, string) error { return nil }

func newTown(t *testing.T, n int) (*Hub, *town) {
	t.Helper()
	l := &town{}
	h := New(Options{Log: l})
	for i := range n {
		r, ok := h.enter(fmt.Sprintf("ses_%d", i))
		if !ok {
			t.Fatal("closing")
		}
		r.touched = time.Now()
		r.checked = time.Now().Add(-time.Duration(i) * time.Second)
		r.owner.Store(&sessions.Owner{AccountID: fmt.Sprintf("account-%d", i/10), LinkID: fmt.Sprintf("link-%d", i/2)})
	}
	return h, l
}

// One round of the housekeeping sees every room that is due, however many there are, with a handful of questions: those
// that wait for the longest come first, and none is put off.
func TestEveryRoomIsLookedAtInOneRound(t *testing.T) {
	const rooms = 2000
	h, l := newTown(t, rooms)
	begun := time.Now()
	for _, want := range []int{rooms, 0} { // the second round finds nothing to do
		due := h.enterDue(begun)
		if !slices.IsSortedFunc(due, func(a, b *room) int { return a.checked.Compare(b.checked) }) {
			t.Error("the rooms come in no order")
		}
		h.look(t.Context(), due)
		seen := map[string]bool{}
		for _, ids := range l.asked {
			for _, id := range ids {
				seen[id] = true
			}
		}
		if len(seen) != want || len(l.asked) > (want+checkBatch-1)/checkBatch {
			t.Errorf("%d of %d rooms were looked at with %d questions", len(seen), want, len(l.asked))
		}
		l.asked = nil
	}
}

// Who revokes sets nobody else back: only the sessions of the link, or of the account, are asked for.
func TestEndedLooksAtItsOwnAlone(t *testing.T) {
	h, l := newTown(t, 2000)
	for _, tc := range []struct {
		account, link string
		want          int
	}{{"account-7", "link-36", 2}, {"account-7", "", 10}, {"account-8", "link-36", 0}, {"stranger", "", 0}} {
		l.asked = nil
		h.Ended(tc.account, tc.link)
		got := 0
		for _, ids := range l.asked {
			got += len(ids)
		}
		if got != tc.want || len(l.asked) > 1 {
			t.Errorf("%s %s: %d sessions in %d questions", tc.account, tc.link, got, len(l.asked))
		}
	}
	if n := len(h.enterDue(time.Now().Add(-time.Minute))); n != 2000-60-10 {
		t.Errorf("%d rooms are due", n)
	}
}

// A store that is away at that moment is asked again in the next round.
func TestEndedStaysDueUntilTheStoreAnswers(t *testing.T) {
	h, l := newTown(t, 20)
	long := time.Now().Add(-time.Hour)
	l.away = errors.New("store away")
	h.Ended("account-0", "link-0")
	if due := h.enterDue(long); len(due) != 2 {
		t.Errorf("%d rooms are due", len(due))
	}
	l.away = nil
	h.look(t.Context(), h.enterDue(long))
	if due := h.enterDue(long); len(due) != 0 {
		t.Errorf("%d rooms are due still", len(due))
	}
}

// writing remembers whether its write had an end.
type writing struct {
	Sessions
	bounded bool
}

func (w *writing) Touch(ctx context.Context, _ string) error {
	_, w.bounded = ctx.Deadline()
	return nil
}

// A slow write for one room does not hold up the round of all.
func TestRoundWaitsForNoWrite(t *testing.T) {
	w := &writing{}
	h := New(Options{Log: &town{}, Sessions: w})
	if r, ok := h.enter("ses_1"); !ok {
		t.Fatal("closing")
	} else if r.attend(t.Context()); !w.bounded {
		t.Error("the write has no end")
	}
}
