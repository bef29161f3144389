package relay

import (
	"context"
	"time"

	"golang.org/x/time/rate"

	"github.com/service-dev/service/proto/glasses"
)

// rateLimits bound the frames per second of a session's apps and of its pages. They are separate because results must
// not wait behind the commands that they answer.
type rateLimits struct{ apps, pages *rate.Limiter }

func (h *Hub) newRateLimits() rateLimits {
	limiter := func() *rate.Limiter { return rate.NewLimiter(rate.Limit(h.FrameRate), h.FrameBurst) }
	return rateLimits{apps: limiter(), pages: limiter()}
}

// wait delays a sender that is over its limit, until ctx ends. Nothing is refused; further frames stay in its
// connection.
func (l rateLimits) wait(ctx context.Context, sender string) {
	limiter := l.pages
	if sender == glasses.SenderApp {
		limiter = l.apps
	}
	delay := limiter.Reserve().Delay()
	if delay <= 0 {
		return
	}
	select {
	case <-time.After(delay):
	case <-ctx.Done():
	}
}

// isFull reports whether nothing is used up, so that new limits would allow the same.
func (l rateLimits) isFull() bool {
	return l.apps.Tokens() >= float64(l.apps.Burst()) && l.pages.Tokens() >= float64(l.pages.Burst())
}

// saveLimits keeps what a session has used up after every peer has left, so that attaching again does not grant a new
// burst. mu is held.
func (h *Hub) saveLimits(s *liveSession) {
	if !s.limits.isFull() {
		h.savedLimits[s.id] = s.limits
	}
}

// restoreLimits undoes saveLimits. mu is held.
func (h *Hub) restoreLimits(s *liveSession) {
	if saved, ok := h.savedLimits[s.id]; ok {
		s.limits = saved
		delete(h.savedLimits, s.id)
	}
}

// dropFullLimits forgets saved limits that are full again, a few seconds after every peer has left.
func (h *Hub) dropFullLimits() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, limits := range h.savedLimits {
		if limits.isFull() {
			delete(h.savedLimits, id)
		}
	}
}
