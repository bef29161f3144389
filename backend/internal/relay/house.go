package relay

import (
	"context"
	"sync"
	"time"

	"github.com/service-dev/service/proto/glasses"
)

// keepHouse does what time asks for, for all sessions: beats, pings, commands that waited too long, counts of streams,
// and beside them sessions that are over. One goroutine stands in for a ticker a peer. It returns when ctx ends.
func (h *Hub) keepHouse(ctx context.Context) {
	var checks sync.WaitGroup
	defer checks.Wait()
	checks.Go(func() { h.keepChecks(ctx) })
	tick := time.NewTicker(max(min(h.BeatEvery, h.PingEvery/4, h.CountEvery/4, time.Second), time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		h.dropPaces()
		beat := h.frame(glasses.TypeBeat, "", struct{}{})
		for _, r := range h.enterAll() {
			r.beat(h, beat)
			if r.waits() {
				r.expire(ctx)
			}
			h.leave(r)
		}
	}
}

// enterAll holds every room; each must be left.
func (h *Hub) enterAll() []*room {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.enterIf(func(*room) bool { return true })
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
