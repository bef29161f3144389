package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	maxQueued     = 256 // queued writes; further callers block until there is space
	maxBatchDelay = 4 * time.Millisecond
)

var errClosed = errors.New("the database is closed")

// batchQueue collects waiting writes and has them committed together in batches.
//
// Callers that return together often come back together. A queue that committed every write as soon as possible could
// split them permanently into two halves, each waiting for the other's commit. The queue therefore waits for as many
// writes as were in progress at the last commit, but only for half the duration of a commit and never longer than
// maxBatchDelay. A lone caller is never delayed.
type batchQueue[W any] struct {
	commit  func(batch []*pending[W]) // completes every write of the batch
	most    int                       // maximum writes per batch; limits how long the last one waits
	queue   chan *pending[W]
	stopped chan struct{} // closed once serve has returned
	active  int           // callers at the last commit, completed and queued; used only by the goroutine of serve

	mu     sync.RWMutex // read-locked while a write is queued, so that close happens after it
	closed bool
}

// pending is a write that has not completed.
type pending[W any] struct {
	ctx     context.Context
	work    W
	claimed atomic.Bool   // by the goroutine that runs it, or by the caller that withdraws it
	err     error         // the outcome; readable once done is closed
	done    chan struct{} // closed when the caller may return
}

// panicError reports a panic of a write: its value and its stack.
type panicError string

func (p panicError) Error() string { return string(p) }

// recovered sets err to a panicError if the deferring function panics.
func recovered(err *error) {
	if r := recover(); r != nil {
		*err = panicError(fmt.Sprintf("write panicked: %v\n\n%s", r, debug.Stack()))
	}
}

func newBatchQueue[W any](most int) *batchQueue[W] {
	return &batchQueue[W]{most: most, queue: make(chan *pending[W], maxQueued), stopped: make(chan struct{})}
}

// do returns once the write is committed, or returns the error that prevented it. If ctx ends before the write starts,
// do returns immediately; afterwards it waits. A panic of the write continues in the caller.
func (q *batchQueue[W]) do(ctx context.Context, work W) error {
	p := &pending[W]{ctx: ctx, work: work, done: make(chan struct{})}
	if err := q.enqueue(p); err != nil {
		return err
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		if p.claim() {
			return ctx.Err()
		}
		<-p.done
	}
	var panicked panicError
	if errors.As(p.err, &panicked) {
		panic(string(panicked))
	}
	return p.err
}

func (q *batchQueue[W]) enqueue(p *pending[W]) error {
	q.mu.RLock()
	defer q.mu.RUnlock()
	if q.closed {
		return errClosed
	}
	select {
	case q.queue <- p:
		return nil
	case <-p.ctx.Done():
		return p.ctx.Err()
	}
}

// close commits the queued writes and stops the queue. Later writes fail with errClosed.
func (q *batchQueue[W]) close() {
	q.mu.Lock()
	if !q.closed {
		q.closed = true
		close(q.queue)
	}
	q.mu.Unlock()
	<-q.stopped
}

// serve commits one batch after another.
func (q *batchQueue[W]) serve() {
	defer close(q.stopped)
	var took time.Duration
	for first := range q.queue {
		batch := q.collect([]*pending[W]{first}, q.most, nil)
		if expected := min(q.active, q.most); len(batch) < expected {
			delay := time.NewTimer(min(took/2, maxBatchDelay))
			batch = q.collect(batch, expected, delay.C)
			delay.Stop()
		}
		start := time.Now()
		q.commit(batch)
		took = time.Since(start)
	}
}

// collect adds queued writes to the batch until it has size writes. If until is set, it waits for more writes until
// then.
func (q *batchQueue[W]) collect(batch []*pending[W], size int, until <-chan time.Time) []*pending[W] {
	for len(batch) < size {
		p, ok := q.next(until)
		if !ok {
			break
		}
		batch = append(batch, p)
	}
	return batch
}

func (q *batchQueue[W]) next(until <-chan time.Time) (*pending[W], bool) {
	select {
	case p, open := <-q.queue:
		return p, open
	default:
	}
	if until == nil {
		return nil, false
	}
	select {
	case p, open := <-q.queue:
		return p, open
	case <-until:
		return nil, false
	}
}

// commitTogether completes a batch with one call of write. If that fails and one of the writes may be the cause, it
// writes each separately.
func (q *batchQueue[W]) commitTogether(batch []*pending[W], write func(batch []*pending[W]) error) {
	batch = slices.DeleteFunc(batch, func(p *pending[W]) bool { return p.expired() || !p.claim() })
	if len(batch) == 0 {
		return
	}
	err := write(batch)
	q.active = len(batch) + len(q.queue)
	alone := err != nil && len(batch) > 1 && !isUnavailable(err)
	for i, p := range batch {
		if alone {
			err = write(batch[i : i+1])
		}
		p.answer(err)
	}
}

// claim reports whether the caller now owns the write, in order to run or withdraw it.
func (p *pending[W]) claim() bool { return p.claimed.CompareAndSwap(false, true) }

// expired reports whether the write's context has ended. If so, it releases a caller that is still waiting.
func (p *pending[W]) expired() bool {
	err := p.ctx.Err()
	if err != nil && p.claim() {
		p.answer(err)
	}
	return err != nil
}

func (p *pending[W]) answer(err error) {
	p.err = err
	close(p.done)
}
