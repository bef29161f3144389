package relay

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// checkWait bounds one look into the store at whether sessions go on.
	checkWait  = 2 * time.Second
	checkBatch = 256 // sessions that one question is about
	maxChecks  = 16  // questions at once
)

// keepChecks looks at every room within PingEvery, since a session ends in other processes too: its link is revoked, it
// is closed elsewhere.
func (h *Hub) keepChecks(ctx context.Context) {
	tick := time.NewTicker(max(min(h.PingEvery/8, time.Second), time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			h.look(ctx, h.enterDue(time.Now().Add(-h.PingEvery*3/4)))
		case <-ctx.Done():
			return
		}
	}
}

// Ended has the sessions of a link looked at now, or with linkID "" those of all links of the account: it was revoked,
// or its person was signed out or shut out, in this process. Peers of what is over are told before it returns, unless
// the store does not answer within two seconds; then the next rounds of the housekeeping ask again.
func (h *Hub) Ended(accountID, linkID string) {
	h.endings.Add(1)
	ctx, cancel := context.WithTimeout(h.life, checkWait)
	defer cancel()
	h.look(ctx, h.enterOwned(accountID, linkID))
}

// enterDue holds the rooms whose last check was before then, the longest ago first; each must be left.
func (h *Hub) enterDue(then time.Time) []*room {
	h.mu.Lock()
	defer h.mu.Unlock()
	due := h.enterIf(func(r *room) bool { return r.checked.Before(then) })
	slices.SortFunc(due, func(a, b *room) int { return a.checked.Compare(b.checked) })
	return due
}

// enterOwned holds the rooms of an owner and makes them due; each must be left.
func (h *Hub) enterOwned(accountID, linkID string) []*room {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing {
		return nil
	}
	owned := h.enterIf(func(r *room) bool {
		owner := r.owner.Load()
		return owner != nil && owner.AccountID == accountID && (linkID == "" || owner.LinkID == linkID)
	})
	for _, r := range owned {
		r.checked = time.Time{}
	}
	return owned
}

// enterIf holds the rooms that match. mu is held.
func (h *Hub) enterIf(match func(*room) bool) []*room {
	var all []*room
	for _, r := range h.rooms {
		if match(r) {
			r.holders++
			h.serving.Add(1)
			all = append(all, r)
		}
	}
	return all
}

// makeDue has a room looked at in the next round.
func (h *Hub) makeDue(r *room) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r.checked = time.Time{}
}

// look ends what is over of held rooms and pages whose person signed out, keeps attended sessions from expiring, and
// leaves the rooms. What cannot be read goes on and stays due.
func (h *Hub) look(ctx context.Context, rooms []*room) {
	defer func() {
		for _, r := range rooms {
			h.leave(r)
		}
	}()
	var mu sync.Mutex
	var open []*room
	abreast(slices.Chunk(rooms, checkBatch), func(batch []*room) {
		goOn := h.endOver(ctx, batch)
		mu.Lock()
		defer mu.Unlock()
		open = append(open, goOn...)
	})
	abreast(slices.Values(open), func(r *room) { r.attend(ctx) })
}

// abreast does something for each, so many at once, in the order they come in, and waits for all.
func abreast[T any](all iter.Seq[T], do func(T)) {
	var workers errgroup.Group
	workers.SetLimit(maxChecks)
	for one := range all {
		workers.Go(func() error {
			do(one)
			return nil
		})
	}
	_ = workers.Wait()
}

// endOver asks for a batch whether the sessions go on, ends those that do not and gives the others.
func (h *Hub) endOver(ctx context.Context, batch []*room) (goOn []*room) {
	begun := time.Now()
	bounded, cancel := context.WithTimeout(ctx, checkWait)
	defer cancel()
	ids := make([]string, 0, len(batch))
	for _, r := range batch {
		ids = append(ids, r.id)
	}
	found, err := h.Log.SomeSessions(bounded, ids)
	if err != nil {
		if ctx.Err() == nil {
			h.Logger.Warn("checking attended sessions", "count", len(ids), "error", err)
		}
		return nil
	}
	open := make(map[string]bool, len(found))
	for _, s := range found {
		open[s.ID] = s.Open(h.Now())
	}
	for _, r := range batch {
		if open[r.id] {
			goOn = append(goOn, r)
		} else {
			r.endAll(closeSessionOver, "the session is over")
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range batch {
		r.checked = begun
	}
	return goOn
}

// attend does what an open session asks for now and then. Its expiry is left to a later round while the store holds
// the room up.
func (r *room) attend(ctx context.Context) {
	r.who.Lock()
	pages := slices.Clone(r.pages)
	r.who.Unlock()
	for _, c := range pages {
		c.checkSignedIn(ctx)
	}
	if !r.mu.TryLock() {
		return
	}
	defer r.mu.Unlock()
	if r.h.Now().Sub(r.touched) >= touchEvery {
		ctx, cancel := context.WithTimeout(ctx, checkWait) // the other rooms wait for this
		defer cancel()
		if err := r.touch(ctx); err != nil {
			r.h.Logger.Warn("attended session", "session", r.id, "error", err)
		}
	}
}

// checkSignedIn ends a page whose person signed out.
func (c *conn) checkSignedIn(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, checkWait)
	defer cancel()
	if !c.signedIn(ctx) && ctx.Err() == nil {
		c.end(closeSignedOut, "signed out; sign in again")
	}
}
