package host

import (
	"context"
	"sync"
	"time"

	"github.com/service-dev/service/glasses"
)

// Rate is a limit on frames. Frames above the limit are not refused, but wait in their connection.
type Rate struct {
	PerSecond int
	Burst     int
}

// Rates limits the frames of a session's apps, and separately the frames of its glasses, because results must not wait
// behind the commands that they answer, and the chunks of sound from its apps. The limits belong to the session, so
// reconnecting does not allow a new burst.
type Rates struct {
	mu                    sync.Mutex
	apps, glasses, chunks time.Time // when the whole burst is available again
}

// Wait uses one frame of the sender's rate. It waits while the sender exceeds the rate, and returns early when ctx
// ends. For chunks of sound, sender is glasses.TypePlaybackChunk.
func (r *Rates) Wait(ctx context.Context, sender string, rate Rate) {
	delay := r.reserve(time.Now(), sender, rate)
	if delay <= 0 {
		return
	}
	select {
	case <-time.After(delay):
	case <-ctx.Done():
	}
}

// reserve returns how long the next frame must wait.
func (r *Rates) reserve(now time.Time, sender string, rate Rate) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	full := &r.glasses
	switch sender {
	case glasses.SenderApp:
		full = &r.apps
	case glasses.TypePlaybackChunk:
		full = &r.chunks
	}
	if full.Before(now) {
		*full = now
	}
	interval := time.Second / time.Duration(rate.PerSecond)
	*full = full.Add(interval)
	return full.Sub(now) - time.Duration(rate.Burst)*interval
}

// IsFull reports whether all bursts are available, so that new Rates would allow the same.
func (r *Rates) IsFull(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.apps.After(now) && !r.glasses.After(now) && !r.chunks.After(now)
}
