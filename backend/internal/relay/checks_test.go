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

// manySessions is a log of many sessions. It records the queries.
type manySessions struct {
	Log
	mu    sync.Mutex
	asked [][]string
	away  error
}

func (l *manySessions) SomeSessions(_ context.Context, ids []string) (found []sessions.Session, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked = append(l.asked, ids)
	for _, id := range ids {
		found = append(found, sessions.Session{ID: id, ExpiresAt: time.Now().Add(time.Hour)})
	}
	return found, l.away
}

// revokedWhileAttaching revokes a session's link right after an attaching peer has read the session.
type revokedWhileAttaching struct {
	Log
	hub   *Hub
	ended bool
}

func (l *revokedWhileAttaching) Session(_ context.Context, id string) (sessions.Session, error) {
	l.hub.Ended("ada", "link-1")
	l.ended = true
	return sessions.Session{ID: id, Owner: sessions.Owner{AccountID: "ada", LinkID: "link-1"},
		ExpiresAt: time.Now().Add(time.Hour)}, nil
}

// If a link is revoked while a peer attaches, the next round checks the session.
func TestEnded_FindsPeerThatIsAttaching(t *testing.T) {
	l := &revokedWhileAttaching{}
	h := New(Options{Log: l, Sessions: openSessions{}})
	l.hub = h
	r, _ := h.hold("ses_1")
	r.isLoaded = true
	go func() {
		for e := range h.queue {
			if e.flushed != nil {
				close(e.flushed)
			}
		}
	}()
	defer close(h.queue)
	if _, err := r.attach(t.Context(), &conn{session: r}); err != nil || !l.ended {
		t.Fatal(err)
	}
	if due := h.holdDue(time.Now().Add(-time.Hour)); len(due) != 1 {
		t.Errorf("%d sessions are due, want 1", len(due))
	}
}

// openSessions reports every session as open.
type openSessions struct{ Sessions }

func (openSessions) Touch(context.Context, string) error { return nil }

// newManySessions returns a hub with n sessions. Session i was checked i seconds before now.
func newManySessions(t *testing.T, n int, now time.Time) (*Hub, *manySessions) {
	t.Helper()
	l := &manySessions{}
	h := New(Options{Log: l})
	for i := range n {
		r, ok := h.hold(fmt.Sprintf("ses_%d", i))
		if !ok {
			t.Fatal("closing")
		}
		r.touched = now
		r.checked = now.Add(-time.Duration(i) * time.Second)
		r.owner.Store(&sessions.Owner{AccountID: fmt.Sprintf("account-%d", i/10), LinkID: fmt.Sprintf("link-%d", i/2)})
	}
	return h, l
}

// One round of maintenance checks every due session, the least recently checked first, with one query per checkBatch
// sessions.
func TestCheck_CoversEverySessionInOneRound(t *testing.T) {
	const count = 2000
	begun := time.Now()
	h, l := newManySessions(t, count, begun.Add(-time.Millisecond))
	for _, want := range []int{count, 0} { // the second round finds nothing to do
		due := h.holdDue(begun)
		if !slices.IsSortedFunc(due, func(a, b *liveSession) int { return a.checked.Compare(b.checked) }) {
			t.Error("the due sessions are not ordered by their last check")
		}
		h.check(t.Context(), due)
		seen := map[string]bool{}
		for _, ids := range l.asked {
			for _, id := range ids {
				seen[id] = true
			}
		}
		if len(seen) != want || len(l.asked) > (want+checkBatch-1)/checkBatch {
			t.Errorf("%d of %d sessions were checked, with %d queries; want all, in batches", len(seen), want, len(l.asked))
		}
		l.asked = nil
	}
}

// A revocation queries only the sessions of its link or account, so it does not delay others.
func TestEnded_ChecksOnlyItsOwnSessions(t *testing.T) {
	now := time.Now()
	h, l := newManySessions(t, 2000, now)
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
			t.Errorf("account %s, link %s: checked %d sessions with %d queries, want only its own with one",
				tc.account, tc.link, got, len(l.asked))
		}
	}
	if n := len(h.holdDue(now.Add(-time.Minute))); n != 2000-61-10 {
		t.Errorf("%d sessions are due, want 1929", n)
	}
}

// If the store is unavailable during a revocation, the next round queries the sessions again.
func TestEnded_KeepsSessionsDueUntilStoreAnswers(t *testing.T) {
	h, l := newManySessions(t, 20, time.Now())
	long := time.Now().Add(-time.Hour)
	l.away = errors.New("store away")
	h.Ended("account-0", "link-0")
	if due := h.holdDue(long); len(due) != 2 {
		t.Errorf("%d sessions are due, want 2", len(due))
	}
	l.away = nil
	h.check(t.Context(), h.holdDue(long))
	if due := h.holdDue(long); len(due) != 0 {
		t.Errorf("%d sessions are still due, want none", len(due))
	}
}

// deadlineRecorder records whether its writes had a deadline.
type deadlineRecorder struct {
	Sessions
	bounded bool
}

func (w *deadlineRecorder) Touch(ctx context.Context, _ string) error {
	_, w.bounded = ctx.Deadline()
	return nil
}

// A slow write for one session does not delay the round for all.
func TestKeepAlive_LimitsItsWrite(t *testing.T) {
	w := &deadlineRecorder{}
	h := New(Options{Log: &manySessions{}, Sessions: w})
	if r, ok := h.hold("ses_1"); !ok {
		t.Fatal("closing")
	} else if r.keepAlive(t.Context()); !w.bounded {
		t.Error("the write had no deadline")
	}
}
