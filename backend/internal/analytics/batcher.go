package analytics

import (
	"context"
	"slices"
	"sync"
	"time"
)

const (
	maxBatches   = 16               // batches per transaction
	writeTimeout = 30 * time.Second // limit for one transaction
)

// batcher commits all pending batches in one transaction. It needs no goroutine: a caller that arrives while no other
// caller is writing writes all pending batches.
type batcher struct {
	write   func(context.Context, []Batch) ([]Outcome, error)
	writing chan struct{} // holds one token while a caller writes

	mu      sync.Mutex
	waiting []*pendingBatch
}

type pendingBatch struct {
	batch   Batch
	outcome Outcome
	err     error
	done    chan struct{} // closed once outcome and err are set
}

func newBatcher(write func(context.Context, []Batch) ([]Outcome, error)) *batcher {
	return &batcher{write: write, writing: make(chan struct{}, 1)}
}

// count writes the batch, alone or together with others. If ctx ends first, the batch may still be written; sending the
// same events again then counts them as duplicates.
func (b *batcher) count(ctx context.Context, batch Batch) (Outcome, error) {
	if err := ctx.Err(); err != nil {
		return Outcome{}, err
	}
	p := &pendingBatch{batch: batch, done: make(chan struct{})}
	b.mu.Lock()
	b.waiting = append(b.waiting, p)
	b.mu.Unlock()
	for {
		select {
		case <-p.done:
			return p.outcome, p.err
		case <-ctx.Done():
			b.withdraw(p)
			return Outcome{}, ctx.Err()
		case b.writing <- struct{}{}:
			b.writeWaiting(ctx)
			<-b.writing
		}
	}
}

// writeWaiting writes the pending batches. It continues after its caller's context ends, because it also writes the
// batches of other callers.
func (b *batcher) writeWaiting(ctx context.Context) {
	b.mu.Lock()
	n := min(len(b.waiting), maxBatches)
	pending := slices.Clone(b.waiting[:n])
	b.waiting = slices.Clone(b.waiting[n:])
	b.mu.Unlock()
	if len(pending) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	b.writeAll(ctx, pending)
}

// writeAll writes the batches together. If that fails, it writes them one by one, so that only invalid batches fail.
func (b *batcher) writeAll(ctx context.Context, pending []*pendingBatch) {
	batches := make([]Batch, len(pending))
	for i, p := range pending {
		batches[i] = p.batch
	}
	outcomes, err := b.write(ctx, batches)
	if err != nil && len(pending) > 1 {
		for i := range pending {
			b.writeAll(ctx, pending[i:i+1])
		}
		return
	}
	for i, p := range pending {
		if p.err = err; err == nil {
			p.outcome = outcomes[i]
		}
		close(p.done)
	}
}

func (b *batcher) withdraw(p *pendingBatch) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = slices.DeleteFunc(b.waiting, func(other *pendingBatch) bool { return other == p })
}
