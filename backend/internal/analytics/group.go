package analytics

import (
	"context"
	"sync"
	"time"
)

const (
	groupMost = 16               // batches in one transaction
	groupTime = 30 * time.Second // that it may take
)

// group commits batches that wait at the same time in one transaction: whoever comes first while nobody writes, writes
// for all who wait. It has no goroutine of its own.
type group struct {
	write func(context.Context, []Batch) ([]Outcome, error)
	turn  chan struct{} // holds one token while somebody writes

	mu      sync.Mutex
	waiting []*ticket
}

type ticket struct {
	batch   Batch
	outcome Outcome
	err     error
	done    chan struct{} // closed when outcome and err stand
}

func newGroup(write func(context.Context, []Batch) ([]Outcome, error)) *group {
	return &group{write: write, turn: make(chan struct{}, 1)}
}

// count writes the batch, alone or with others. When ctx ends first the batch may still be written; sent again, its
// events are duplicates.
func (g *group) count(ctx context.Context, b Batch) (Outcome, error) {
	if err := ctx.Err(); err != nil {
		return Outcome{}, err
	}
	t := &ticket{batch: b, done: make(chan struct{})}
	g.mu.Lock()
	g.waiting = append(g.waiting, t)
	g.mu.Unlock()
	for {
		select {
		case <-t.done:
			return t.outcome, t.err
		case <-ctx.Done():
			g.leave(t)
			return Outcome{}, ctx.Err()
		case g.turn <- struct{}{}:
			g.lead(ctx)
			<-g.turn
		}
	}
}

// lead writes what waits. The write of several callers must not end with one of them.
func (g *group) lead(ctx context.Context) {
	g.mu.Lock()
	n := min(len(g.waiting), groupMost)
	all := append([]*ticket(nil), g.waiting[:n]...)
	g.waiting = append([]*ticket(nil), g.waiting[n:]...)
	g.mu.Unlock()
	if len(all) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), groupTime)
	defer cancel()
	g.settle(ctx, all)
}

// settle writes tickets together; where that does not work, one by one, so that a bad one fails alone.
func (g *group) settle(ctx context.Context, all []*ticket) {
	batches := make([]Batch, len(all))
	for i, t := range all {
		batches[i] = t.batch
	}
	outcomes, err := g.write(ctx, batches)
	if err != nil && len(all) > 1 {
		for i := range all {
			g.settle(ctx, all[i:i+1])
		}
		return
	}
	for i, t := range all {
		if t.err = err; err == nil {
			t.outcome = outcomes[i]
		}
		close(t.done)
	}
}

func (g *group) leave(t *ticket) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, w := range g.waiting {
		if w == t {
			g.waiting = append(g.waiting[:i:i], g.waiting[i+1:]...)
			return
		}
	}
}
