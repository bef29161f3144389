package relay

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/service-dev/service/glasses"
)

const (
	checkTimeout = 2 * time.Second // limit per query for the state of sessions
	checkBatch   = 256             // sessions per query
	maxChecks    = 16              // concurrent queries
)

// runChecks checks every session within PingEvery, because other processes can also end sessions, by revoking a link or
// closing a session.
func (h *Hub) runChecks(ctx context.Context) {
	tick := time.NewTicker(max(min(h.PingEvery/8, time.Second), time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			h.check(ctx, h.holdDue(time.Now().Add(-h.PingEvery*3/4)))
		case <-ctx.Done():
			return
		}
	}
}

// Ended immediately checks the sessions of a link, or of all links of the account if linkID is "". Call it after this
// process has revoked a link, or has signed out or blocked a user. It disconnects the peers of closed sessions before
// it returns. If the store does not respond within two seconds, the next maintenance rounds check the sessions again.
func (h *Hub) Ended(accountID, linkID string) {
	h.endings.Add(1)
	ctx, cancel := context.WithTimeout(h.life, checkTimeout)
	defer cancel()
	h.check(ctx, h.holdOwned(accountID, linkID))
}

// holdDue holds the sessions whose last check was earlier than before, least recently checked first. The caller must
// release each of them.
func (h *Hub) holdDue(before time.Time) []*liveSession {
	h.mu.Lock()
	defer h.mu.Unlock()
	due := h.holdWhere(func(s *liveSession) bool { return s.checked.Before(before) })
	slices.SortFunc(due, func(a, b *liveSession) int { return a.checked.Compare(b.checked) })
	return due
}

// holdOwned holds the sessions of an owner and marks them due. The caller must release each of them.
func (h *Hub) holdOwned(accountID, linkID string) []*liveSession {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing {
		return nil
	}
	owned := h.holdWhere(func(s *liveSession) bool {
		owner := s.owner.Load()
		return owner != nil && owner.AccountID == accountID && (linkID == "" || owner.LinkID == linkID)
	})
	for _, s := range owned {
		s.checked = time.Time{}
	}
	return owned
}

// holdWhere holds the sessions that match. The caller must hold mu.
func (h *Hub) holdWhere(match func(*liveSession) bool) []*liveSession {
	var all []*liveSession
	for _, s := range h.live {
		if match(s) {
			s.holders++
			h.serving.Add(1)
			all = append(all, s)
		}
	}
	return all
}

// markDue marks a session to be checked in the next round.
func (h *Hub) markDue(s *liveSession) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.checked = time.Time{}
}

// check processes and releases held sessions. It ends closed sessions, disconnects pages whose user signed out, and
// keeps sessions with peers from expiring. Sessions that cannot be read continue and stay due.
func (h *Hub) check(ctx context.Context, live []*liveSession) {
	defer func() {
		for _, s := range live {
			h.release(s)
		}
	}()
	var mu sync.Mutex
	var open []*liveSession
	concurrently(slices.Chunk(live, checkBatch), func(batch []*liveSession) {
		stillOpen := h.endClosed(ctx, batch)
		mu.Lock()
		defer mu.Unlock()
		open = append(open, stillOpen...)
	})
	concurrently(slices.Values(open), func(s *liveSession) { s.keepAlive(ctx) })
}

// concurrently calls do for each item, with up to maxChecks calls at a time, and waits for all of them.
func concurrently[T any](items iter.Seq[T], do func(T)) {
	var workers errgroup.Group
	workers.SetLimit(maxChecks)
	for item := range items {
		workers.Go(func() error {
			do(item)
			return nil
		})
	}
	_ = workers.Wait()
}

// endClosed disconnects the peers of sessions that were closed, and returns the sessions that are
// still open.
func (h *Hub) endClosed(ctx context.Context, batch []*liveSession) (stillOpen []*liveSession) {
	begun := time.Now()
	queryCtx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	ids := make([]string, 0, len(batch))
	for _, s := range batch {
		ids = append(ids, s.id)
	}
	found, err := h.Log.SomeSessions(queryCtx, ids)
	if err != nil {
		if ctx.Err() == nil {
			h.Logger.Warn("failed to check sessions", "count", len(ids), "err", err)
		}
		return nil
	}
	isOpen := make(map[string]bool, len(found))
	for _, s := range found {
		isOpen[s.ID] = s.Open(h.Now())
	}
	for _, s := range batch {
		if isOpen[s.id] {
			stillOpen = append(stillOpen, s)
		} else {
			s.endPeers(glasses.CloseSessionOver, "the session is over")
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range batch {
		s.checked = begun
	}
	return stillOpen
}

// keepAlive disconnects pages whose user signed out, renews the tokens of apps, and extends an open session. If a
// slow store prevents that, a later round extends the session.
func (s *liveSession) keepAlive(ctx context.Context) {
	for _, c := range s.pages.All() {
		c.checkSignedIn(ctx)
	}
	s.RenewTokens(ctx, false)
	if !s.Mu.TryLock() {
		return
	}
	defer s.Mu.Unlock()
	if s.hub.Now().Sub(s.touched) >= touchEvery {
		ctx, cancel := context.WithTimeout(ctx, checkTimeout) // other sessions are waiting for this round
		defer cancel()
		if err := s.touch(ctx); err != nil {
			s.hub.Logger.Warn("failed to extend session with peers", "session", s.id, "err", err)
		}
	}
}

// checkSignedIn disconnects a page whose user signed out.
func (c *conn) checkSignedIn(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	if !c.isSignedIn(ctx) && ctx.Err() == nil {
		c.End(glasses.CloseBadSecret, "signed out; sign in again")
	}
}
