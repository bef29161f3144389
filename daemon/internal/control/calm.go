package control

import (
	"log/slog"
	"sync"
	"time"
)

// calmFor is how long the log rests after a line about a refusal.
const calmFor = 10 * time.Second

// calm writes refusals into the log without letting whoever is refused fill the disk with them: a line now and then, with
// the number of those that were left out.
type calm struct {
	log *slog.Logger
	now func() time.Time

	mu    sync.Mutex
	until time.Time
	lost  int
}

func (c *calm) warn(message string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	if now.Before(c.until) {
		c.lost++
		return
	}
	if c.lost > 0 {
		args = append(args, "leftOut", c.lost)
	}
	c.until, c.lost = now.Add(calmFor), 0
	c.log.Warn(message, args...)
}
