package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

const (
	maxQueued     = 256 // queued writes; further callers block until there is space
	maxBatchDelay = 4 * time.Millisecond
)

var errClosed = errors.New("the database is closed")

// queue collects waiting writes and has them committed together in batches.
//
// Callers that finish together often write again together. If the queue committed every write as soon as possible,
// the callers could split permanently into two halves, each waiting for the other's commit. The queue therefore waits
// for as many writes as were in progress at the last commit, but only for half the duration of a commit and never
// longer than maxBatchDelay. A lone caller is never delayed.
type queue struct {
	writes  chan *pendingWrite
	stopped chan struct{} // closed once serve has returned
	active  int           // callers at the last commit, completed and queued; used only by the goroutine of serve

	mu     sync.RWMutex // read-locked while a write is queued, so that close happens after it
	closed bool
}

// pendingWrite is a write that has not completed.
type pendingWrite struct {
	ctx     context.Context // context of the caller
	work    func(ctx context.Context, tx *sql.Tx) error
	claimed atomic.Bool   // set by the goroutine that runs it, or by the caller that withdraws it
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

func newQueue() queue {
	return queue{writes: make(chan *pendingWrite, maxQueued), stopped: make(chan struct{})}
}

// do returns once the write is committed, or returns the error that prevented it. If ctx ends before the write starts,
// do returns immediately; afterwards it waits. A panic of the write continues in the caller.
func (q *queue) do(ctx context.Context, work func(ctx context.Context, tx *sql.Tx) error) error {
	p := &pendingWrite{ctx: ctx, work: work, done: make(chan struct{})}
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

func (q *queue) enqueue(p *pendingWrite) error {
	q.mu.RLock()
	defer q.mu.RUnlock()
	if q.closed {
		return errClosed
	}
	select {
	case q.writes <- p:
		return nil
	case <-p.ctx.Done():
		return p.ctx.Err()
	}
}

// close makes later writes fail with errClosed. The queued writes are still committed, before stopped is closed.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.closed = true
		close(q.writes)
	}
}

// serve passes batches to commit one after another. commit must complete every write of its batch.
func (q *queue) serve(commit func(batch []*pendingWrite)) {
	defer close(q.stopped)
	var took time.Duration
	for first := range q.writes {
		batch := q.collect([]*pendingWrite{first}, maxBatch, nil)
		if expected := min(q.active, maxBatch); len(batch) < expected {
			delay := time.NewTimer(min(took/2, maxBatchDelay))
			batch = q.collect(batch, expected, delay.C)
			delay.Stop()
		}
		start := time.Now()
		commit(batch)
		took = time.Since(start)
	}
}

// collect adds queued writes to the batch until it has size writes. If until is set, it waits for more writes until
// then.
func (q *queue) collect(batch []*pendingWrite, size int, until <-chan time.Time) []*pendingWrite {
	for len(batch) < size {
		p, ok := q.next(until)
		if !ok {
			break
		}
		batch = append(batch, p)
	}
	return batch
}

func (q *queue) next(until <-chan time.Time) (*pendingWrite, bool) {
	select {
	case p, open := <-q.writes:
		return p, open
	default:
	}
	if until == nil {
		return nil, false
	}
	select {
	case p, open := <-q.writes:
		return p, open
	case <-until:
		return nil, false
	}
}

// claim reports whether the caller now owns the write, and may run or withdraw it.
func (p *pendingWrite) claim() bool { return p.claimed.CompareAndSwap(false, true) }

// expired reports whether the write's context has ended. If so, it releases a caller that is still waiting.
func (p *pendingWrite) expired() bool {
	err := p.ctx.Err()
	if err != nil && p.claim() {
		p.answer(err)
	}
	return err != nil
}

func (p *pendingWrite) answer(err error) {
	p.err = err
	close(p.done)
}
