package relay

import (
	"time"

	"github.com/service-dev/service/glasses/host"
)

// chunkRate limits the chunks of sound from a session's apps: chunks of 100 ms at ten times their speed.
var chunkRate = host.Rate{PerSecond: 100, Burst: 200}

// wait delays a sender that is over its limit, and returns early when the hub closes.
func (h *Hub) wait(r *host.Rates, sender string) {
	r.Wait(h.life, sender, host.Rate{PerSecond: h.FrameRate, Burst: h.FrameBurst})
}

// saveRates keeps a session's used capacity after every peer has left, so that attaching again does not allow a new
// burst. The caller must hold mu.
func (h *Hub) saveRates(s *liveSession) {
	if !s.rates.IsFull(time.Now()) {
		h.savedRates[s.id] = s.rates
	}
}

// restoreRates undoes saveRates. The caller must hold mu.
func (h *Hub) restoreRates(s *liveSession) {
	if saved, ok := h.savedRates[s.id]; ok {
		s.rates = saved
		delete(h.savedRates, s.id)
	}
}

// dropFullRates deletes saved rates once they are full again, a few seconds after every peer has left.
func (h *Hub) dropFullRates() {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	for id, rates := range h.savedRates {
		if rates.IsFull(now) {
			delete(h.savedRates, id)
		}
	}
}
