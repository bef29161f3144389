package relay

import (
	"context"
	"time"

	"golang.org/x/time/rate"

	"github.com/service-dev/service/proto/glasses"
)

// pace is what a session takes of its apps, and of its pages: results must not wait behind the commands that they answer.
type pace struct{ apps, pages *rate.Limiter }

func (h *Hub) newPace() pace {
	frames := func() *rate.Limiter { return rate.NewLimiter(rate.Limit(h.FrameRate), h.FrameBurst) }
	return pace{apps: frames(), pages: frames()}
}

// wait holds a sender up that is faster than its session may be, until life ends. Nothing is refused and nothing lost: what
// the sender has written waits in its connection.
func (p pace) wait(life context.Context, sender string) {
	frames := p.pages
	if sender == glasses.SenderApp {
		frames = p.apps
	}
	wait := frames.Reserve().Delay()
	if wait <= 0 {
		return
	}
	late := time.NewTimer(wait)
	defer late.Stop()
	select {
	case <-late.C:
	case <-life.Done():
	}
}

// whole reports whether nothing is spent: a new pace is as good then.
func (p pace) whole() bool {
	return p.apps.Tokens() >= float64(p.apps.Burst()) && p.pages.Tokens() >= float64(p.pages.Burst())
}

// keepPace keeps what a session has spent when everybody left it, so that coming again gives no fresh burst. mu is held.
func (h *Hub) keepPace(r *room) {
	if !r.pace.whole() {
		h.paces[r.id] = r.pace
	}
}

// takePace gives a session back what it has spent. mu is held.
func (h *Hub) takePace(r *room) {
	if p, spent := h.paces[r.id]; spent {
		r.pace = p
		delete(h.paces, r.id)
	}
}

// dropPaces forgets what is whole again, a few seconds after everybody left.
func (h *Hub) dropPaces() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, p := range h.paces {
		if p.whole() {
			delete(h.paces, id)
		}
	}
}
