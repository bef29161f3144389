package tools

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/service-dev/service/daemon/internal/link"
)

// heartbeat is the interval between progress reports of a waiting call without other events. It is needed because a
// backend may request long poll intervals.
const heartbeat = 10 * time.Second

// progress reports the progress of a wait in seconds. The reported number only increases, as MCP requires.
type progress struct {
	io    IO
	total time.Duration
	start time.Time

	mu   sync.Mutex
	last float64
}

func newProgress(io IO, total time.Duration) *progress {
	return &progress{io: io, total: total, start: time.Now(), last: -0.001}
}

func (p *progress) report(message string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = max(time.Since(p.start).Seconds(), p.last+0.001)
	p.io.Progress(p.last, p.total.Seconds(), message)
}

// onPoll returns a function that reports each poll, or nil if the client did not request progress.
func (p *progress) onPoll() func(link.PollEvent) {
	if p.io.Progress == nil {
		return nil
	}
	return func(e link.PollEvent) {
		message := fmt.Sprintf("%s (poll %d)", waiting, e.PollCount)
		if e.Note != "" {
			message += ": " + e.Note
		}
		p.report(message)
	}
}

// during reports progress while act runs.
func (p *progress) during(ctx context.Context, message string, act func()) {
	if p.io.Progress == nil {
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
				p.report(message)
			case <-beating.Done():
				return
			}
		}
	})
	defer beats.Wait()
	defer stop()
	act()
}
