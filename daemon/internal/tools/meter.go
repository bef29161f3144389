package tools

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/service-dev/service/daemon/internal/link"
)

// heartbeat is how often a waiting call says so although nothing has happened; a backend may ask for polls that are
// far apart.
const heartbeat = 10 * time.Second

// waiting is what a call says that waits for the approval.
const waiting = "waiting for the person to approve"

// meter reports waiting as seconds that only ever grow, as MCP asks for.
type meter struct {
	io    IO
	total time.Duration
	start time.Time

	mu   sync.Mutex
	last float64
}

func newMeter(io IO, total time.Duration) *meter {
	return &meter{io: io, total: total, start: time.Now(), last: -0.001}
}

func (m *meter) tell(message string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last = max(time.Since(m.start).Seconds(), m.last+0.001)
	m.io.Progress(m.last, m.total.Seconds(), message)
}

// poll reports each poll; it is nil when nobody listens.
func (m *meter) poll() func(link.PollEvent) {
	if m.io.Progress == nil {
		return nil
	}
	return func(e link.PollEvent) {
		message := fmt.Sprintf("%s (poll %d)", waiting, e.PollCount)
		if e.Note != "" {
			message += ": " + e.Note
		}
		m.tell(message)
	}
}

// during gives signs of life while act runs.
func (m *meter) during(ctx context.Context, message string, act func()) {
	if m.io.Progress == nil {
		act()
		return
	}
	beating, stop := context.WithCancel(ctx)
	var beats sync.WaitGroup
	beats.Go(func() {
		ticker := time.NewTicker(heartbeat)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				m.tell(message)
			case <-beating.Done():
				return
			}
		}
	})
	defer beats.Wait()
	defer stop()
	act()
}
