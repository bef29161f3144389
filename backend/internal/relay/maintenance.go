package relay

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/service-dev/service/glasses"
)

// runMaintenance does the periodic work for all sessions until ctx ends: heartbeats, pings, overdue commands, stream
// counts, and checks for sessions that have ended. This one goroutine replaces a ticker per peer.
func (h *Hub) runMaintenance(ctx context.Context) {
	var checks sync.WaitGroup
	defer checks.Wait()
	checks.Go(func() { h.runChecks(ctx) })
	tick := time.NewTicker(max(min(h.BeatEvery, h.PingEvery/4, h.CountEvery/4, time.Second), time.Millisecond))
	defer tick.Stop()
	for lastBeat := time.Now(); ; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		h.dropFullRates()
		var beat []byte
		if now := time.Now(); now.Sub(lastBeat) >= h.BeatEvery*9/10 {
			lastBeat, beat = now, h.frame(glasses.TypeBeat, "", struct{}{})
		}
		for _, s := range h.holdAll() {
			s.sendHeartbeats(beat)
			if s.HasDeadlines() {
				s.expire(ctx)
			}
			h.release(s)
			runtime.Gosched() // let the writers run one after another, because each running writer needs a stack
		}
	}
}

// holdAll holds every session. The caller must release each of them.
func (h *Hub) holdAll() []*liveSession {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.holdWhere(func(*liveSession) bool { return true })
}

// sendHeartbeats pings the peers that are due and, unless beat is nil, tells the pages that the service is alive.
func (s *liveSession) sendHeartbeats(beat []byte) {
	now := time.Now()
	for _, c := range s.pages.All() {
		c.PingIfDue(now, s.hub.PingEvery, s.hub.PongWait) // ping first, because a ping would wait behind the heartbeat
		if beat != nil {
			c.SendText(beat)
		}
	}
	for _, c := range s.Apps.All() {
		c.PingIfDue(now, s.hub.PingEvery, s.hub.PongWait)
	}
}

// expire fails overdue commands and logs the stream counts that are due. It skips a session that a slow store blocks.
func (s *liveSession) expire(ctx context.Context) {
	if !s.Mu.TryLock() {
		return
	}
	defer s.Mu.Unlock()
	s.Expire(ctx)
}
