package relay

import (
	"sync"
	"time"

	"github.com/service-dev/service/glasses"
)

// rateLimits limits the frames per second from a session's apps and from its pages. The two are separate because
// results must not wait behind the commands they answer.
type rateLimits struct {
	mu          sync.Mutex
	apps, pages time.Time // times at which the whole burst is available again
}

// reserve uses one frame of a burst that is refilled at one frame per interval. It returns how long the frame must
// wait.
func (l *rateLimits) reserve(now time.Time, sender string, interval time.Duration, burst int) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	full := &l.pages
	if sender == glasses.SenderApp {
		full = &l.apps
	}
	if full.Before(now) {
		*full = now
	}
	*full = full.Add(interval)
	return full.Sub(now) - time.Duration(burst)*interval
}

// isFull reports whether all capacity is available, so that new limits would allow just as much.
func (l *rateLimits) isFull(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.apps.After(now) && !l.pages.After(now)
}

// wait delays a sender that is over its limit, and returns early when the hub closes. Frames are never refused: they
// wait in the connection.
func (h *Hub) wait(l *rateLimits, sender string) {
	delay := l.reserve(time.Now(), sender, time.Second/time.Duration(h.FrameRate), h.FrameBurst)
	if delay <= 0 {
		return
	}
	select {
	case <-time.After(delay):
	case <-h.life.Done():
	}
}

// saveLimits keeps a session's used capacity after every peer has left, so that attaching again does not allow a new
// burst. The caller must hold mu.
func (h *Hub) saveLimits(s *liveSession) {
	if !s.limits.isFull(time.Now()) {
		h.savedLimits[s.id] = s.limits
	}
}

// restoreLimits undoes saveLimits. The caller must hold mu.
func (h *Hub) restoreLimits(s *liveSession) {
	if saved, ok := h.savedLimits[s.id]; ok {
		s.limits = saved
		delete(h.savedLimits, s.id)
	}
}

// dropFullLimits deletes saved limits once they are full again, a few seconds after every peer has left.
func (h *Hub) dropFullLimits() {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	for id, limits := range h.savedLimits {
		if limits.isFull(now) {
			delete(h.savedLimits, id)
		}
	}
}
