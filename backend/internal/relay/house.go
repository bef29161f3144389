package relay

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/service-dev/service/proto/glasses"
)

const (
	// checkWait bounds one look into the store at whether a session goes on.
	checkWait = 2 * time.Second
	maxChecks = 16 // rooms that look at once
)

// keepHouse does what time asks for, for all sessions: beats, pings, commands that waited too long, counts of streams,
// sessions that are over. One goroutine stands in for a ticker a peer. It returns when ctx ends.
func (h *Hub) keepHouse(ctx context.Context) {
	tick := time.NewTicker(max(min(h.BeatEvery, h.PingEvery/4, h.CountEvery/4, time.Second), time.Millisecond))
	defer tick.Stop()
	var checks sync.WaitGroup
	defer checks.Wait()
	free := make(chan struct{}, maxChecks)
	for {
		all := false
		select {
		case <-tick.C:
		case <-h.recheck:
			all = true
		case <-ctx.Done():
			return
		}
		beat := h.frame(glasses.TypeBeat, "", struct{}{})
		for _, r := range h.enterAll() {
			r.beat(h, beat)
			if r.waits() {
				r.expire(ctx)
			}
			if all {
				r.postpone() // its time is now
			}
			if !r.due(h.PingEvery) {
				h.leave(r)
				continue
			}
			select {
			case free <- struct{}{}:
				checks.Go(func() {
					defer func() { <-free }()
					defer h.leave(r)
					r.check(ctx)
				})
			default: // the store is slow; the next tick asks again
				r.postpone()
				h.leave(r)
			}
		}
	}
}

// enterAll holds every room; each must be left.
func (h *Hub) enterAll() []*room {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]*room, 0, len(h.rooms))
	for _, r := range h.rooms {
		r.holders++
		h.serving.Add(1)
		all = append(all, r)
	}
	return all
}

// beat pings every peer in its time, and tells the pages that the service lives.
func (r *room) beat(h *Hub, beat []byte) {
	now := time.Now()
	r.who.Lock()
	defer r.who.Unlock()
	for _, c := range r.pages {
		if now.Sub(c.lastBeat) >= h.BeatEvery*9/10 {
			c.lastBeat = now
			c.tell(beat)
		}
		c.pingIn(now, h.PingEvery)
	}
	for _, c := range r.apps {
		c.pingIn(now, h.PingEvery)
	}
}

func (c *conn) pingIn(now time.Time, every time.Duration) {
	if now.Sub(c.lastPing) >= every {
		c.lastPing = now
		c.ping(every)
	}
}

// due tells whether it is time to look whether the session goes on.
func (r *room) due(every time.Duration) bool {
	if time.Since(r.checked) < every {
		return false
	}
	r.checked = time.Now()
	return true
}

func (r *room) postpone() { r.checked = time.Time{} }

// check ends a session that is over and pages whose person signed out, and keeps an attended session from expiring.
func (r *room) check(ctx context.Context) {
	if r.isOver(ctx) {
		r.endAll(closeSessionOver, "the session is over")
		return
	}
	r.who.Lock()
	pages := slices.Clone(r.pages)
	r.who.Unlock()
	for _, c := range pages {
		c.checkSignedIn(ctx)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.h.Now().Sub(r.touched) >= touchEvery {
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

// waits tells without a lock of the room whether expire has anything to look at.
func (r *room) waits() bool { return r.open.Load() > 0 || r.streams.running() }

// expire answers commands that waited too long, and counts streams. The room is left alone while the store holds it up.
func (r *room) expire(ctx context.Context) {
	if !r.mu.TryLock() {
		return
	}
	defer r.mu.Unlock()
	now := r.h.Now()
	for _, id := range r.waiting(now) {
		r.answer(ctx, id, glasses.CodeTimeout, "the glasses did not answer in time")
	}
	r.noteStreams(ctx, r.streams.due(now, r.h.CountEvery))
}
