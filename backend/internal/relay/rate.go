package relay

import (
	"context"
	"time"

	"golang.org/x/time/rate"

	"github.com/service-dev/service/proto/glasses"
)

// rateLimits limits the frames per second from a session's apps and from its pages. The two are separate because
// results must not wait behind the commands they answer.
type rateLimits struct{ apps, pages *rate.Limiter }

func (h *Hub) newRateLimits() rateLimits {
	limiter := func() *rate.Limiter { return rate.NewLimiter(rate.Limit(h.FrameRate), h.FrameBurst) }
	return rateLimits{apps: limiter(), pages: limiter()}
}

// wait delays a sender that is over its limit, or returns when ctx ends. Frames are never refused: they wait in the
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

// isFull reports whether all capacity is available. New limits would then allow just as much.
func (l rateLimits) isFull() bool {
	return l.apps.Tokens() >= float64(l.apps.Burst()) && l.pages.Tokens() >= float64(l.pages.Burst())
}

// saveLimits keeps a session's used capacity after every peer has left, so that attaching again does not grant a new
// burst. mu must be held.
func (h *Hub) saveLimits(s *liveSession) {
	if !s.limits.isFull() {
		h.savedLimits[s.id] = s.limits
	}
}

// restoreLimits undoes saveLimits. mu must be held.
func (h *Hub) restoreLimits(s *liveSession) {
	if saved, ok := h.savedLimits[s.id]; ok {
		s.limits = saved
		delete(h.savedLimits, s.id)
	}
}

// dropFullLimits drops saved limits once they are full again, a few seconds after every peer has left.
func (h *Hub) dropFullLimits() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, limits := range h.savedLimits {
		if limits.isFull() {
			delete(h.savedLimits, id)
		}
	}
}
