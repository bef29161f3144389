package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Write batching of SQLite
//
// SQLite has one writer, and with full durability a commit waits for the disk, which takes far longer than the
// statements do. So one goroutine owns the only writing connection and commits all writes that wait in one
// transaction: under load they share the cost of a single commit.
//
// Invariants:
//   - A caller is answered after its transaction has reached the disk, even if its own write failed: the failure may
//     depend on rows that another write of the batch has written.
//   - A write takes effect as a whole or not at all, and its failure never affects another's outcome. It may run
//     several times, so it must not keep state from one run to the next.
//   - A caller whose context ends before its write begins is answered at once, and the write never runs. After that
//     the caller waits, because the running function uses the caller's variables.
//   - A statement that has begun is never cancelled (openWriter ensures that). SQLite answers an interrupted INSERT,
//     UPDATE or DELETE by rolling back the whole transaction, and with it the other writes of the batch.
//   - If SQLite rolls the transaction back by itself, as when the disk is full, no later statement of the batch may
//     run: outside a transaction each would be committed on its own. The connection refuses them with errRolledBack.
//
// A batch runs in up to three passes. The first has no savepoints, which would take a sixth of its time and are seldom
// needed. If a write fails, the batch is rolled back and runs again with a savepoint around each write. If a write
// breaks that transaction too, each write runs in a transaction of its own.
//
// Batching is adaptive. Callers that were answered together often return together. A writer that committed as soon as
// anything waits would split them permanently into two halves, each waiting for the other's commit. The writer
// therefore waits for as many writes as were under way at the last commit, but only for half of the time that a commit
// takes and never longer than maxBatchDelay. It never delays a lone caller.
const (
	maxBatch      = 64  // writes in one transaction, so that the last of them does not wait long
	maxQueued     = 256 // queued writes; further callers block until there is room
	maxBatchDelay = 4 * time.Millisecond
)

var (
	errClosed = errors.New("the database is closed")
	errExited = errors.New("the write ended its goroutine") // by runtime.Goexit
)

// batchWriter is the only writer of a SQLite database; see the note above.
type batchWriter struct {
	db      *sql.DB
	queue   chan *pendingWrite
	stopped chan struct{} // closed when serve has returned
	active  int           // callers at the last commit, answered and queued; used by serve's goroutine only

	mu     sync.RWMutex // held for reading while a write is queued, so that close comes after it
	closed bool
}

// pendingWrite is a write whose caller has no answer yet.
type pendingWrite struct {
	ctx     context.Context
	run     func(tx *sql.Tx) error
	claimed atomic.Bool   // by the writer that runs it, or by the caller that withdraws it
	err     error         // the outcome; not to be read before done is closed
	done    chan struct{} // closed when the caller may be answered
}

// panicError is the error of a write that panicked: the value and the stack.
type panicError string

func (p panicError) Error() string { return string(p) }

// newBatchWriter starts a writer, which runs until close.
func newBatchWriter(db *sql.DB) *batchWriter {
	w := &batchWriter{db: db, queue: make(chan *pendingWrite, maxQueued), stopped: make(chan struct{})}
	go w.serve()
	return w
}

// do runs f in a transaction and returns once it is committed. If f fails, do returns f's error and nothing is
// committed. If ctx ends before f runs, do returns at once; later, the end of ctx only keeps statements that use it
// from starting. A panic of f continues in the caller.
func (w *batchWriter) do(ctx context.Context, f func(tx *sql.Tx) error) error {
	p := &pendingWrite{ctx: ctx, run: f, done: make(chan struct{})}
	if err := w.enqueue(p); err != nil {
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

func (w *batchWriter) enqueue(p *pendingWrite) error {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.closed {
		return errClosed
	}
	select {
	case w.queue <- p:
		return nil
	case <-p.ctx.Done():
		return p.ctx.Err()
	}
}

// close commits the queued writes and stops the writer. Later writes fail with errClosed.
func (w *batchWriter) close() {
	w.mu.Lock()
	if !w.closed {
		w.closed = true
		close(w.queue)
	}
	w.mu.Unlock()
	<-w.stopped
}

// serve commits one batch after the other.
func (w *batchWriter) serve() {
	defer close(w.stopped)
	var took time.Duration
	for first := range w.queue {
		batch := w.collect([]*pendingWrite{first}, maxBatch, nil)
		if expected := min(w.active, maxBatch); len(batch) < expected {
			delay := time.NewTimer(min(took/2, maxBatchDelay))
			batch = w.collect(batch, expected, delay.C)
			delay.Stop()
		}
		start := time.Now()
		w.commit(batch)
		took = time.Since(start)
	}
}

// collect appends queued writes until the batch has size writes. With until it also waits for more until then.
func (w *batchWriter) collect(batch []*pendingWrite, size int, until <-chan time.Time) []*pendingWrite {
	for len(batch) < size {
		p, ok := w.next(until)
		if !ok {
			break
		}
		batch = append(batch, p)
	}
	return batch
}

func (w *batchWriter) next(until <-chan time.Time) (*pendingWrite, bool) {
	select {
	case p, open := <-w.queue:
		return p, open
	default:
	}
	if until == nil {
		return nil, false
	}
	select {
	case p, open := <-w.queue:
		return p, open
	case <-until:
		return nil, false
	}
}

// commit runs a batch in up to three passes and answers every write of it.
func (w *batchWriter) commit(batch []*pendingWrite) {
	for _, p := range w.attempt(w.attempt(batch, false), true) {
		w.attempt([]*pendingWrite{p}, false)
	}
}

// attempt runs a batch in one transaction and answers it. If a write broke the transaction, attempt answers none and
// returns them to run again; without savepoints every failure breaks it. A batch of one is always answered. Writes are
// claimed only when they run: BEGIN may take long while another process holds the database.
func (w *batchWriter) attempt(batch []*pendingWrite, savepoints bool) (undecided []*pendingWrite) {
	if batch = slices.DeleteFunc(batch, (*pendingWrite).expired); len(batch) == 0 {
		return nil
	}
	tx, err := w.db.BeginTx(context.Background(), nil)
	if err != nil {
		for _, p := range batch {
			if p.claim() {
				p.answer(err)
			}
		}
		return nil
	}
	ran, rest, broken := runAll(batch, tx, savepoints)
	if broken == nil {
		err = tx.Commit()
		w.active = len(ran) + len(w.queue)
	}
	if errors.Is(err, errRolledBack) { // the write ignored the error of a statement
		broken = err
	}
	if broken != nil {
		broken = errors.Join(broken, ignoreDone(tx.Rollback()))
		if len(batch) == 1 {
			batch[0].answer(broken)
			return nil
		}
		for _, p := range ran {
			p.claimed.Store(false) // until it runs again
		}
		return append(ran, rest...)
	}
	if err != nil {
		err = errors.Join(err, ignoreDone(tx.Rollback()))
	}
	for _, p := range ran {
		p.answer(cmp.Or(err, p.err))
	}
	return nil
}

// runAll runs one write after the other until one breaks the transaction. A write may end its goroutine, as t.FailNow
// does, so runAll runs them in a separate goroutine.
func runAll(batch []*pendingWrite, tx *sql.Tx, savepoints bool) (ran, rest []*pendingWrite, broken error) {
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		broken = errExited
		for i, p := range batch {
			if p.expired() || !p.claim() {
				continue
			}
			ran, rest = append(ran, p), batch[i+1:]
			if err := p.runIn(tx, savepoints); err != nil {
				broken = err
				return
			}
		}
		broken = nil
	}()
	<-exited
	return ran, rest, broken
}

// runIn runs the write and keeps its outcome in p.err. It returns an error if the transaction is broken.
func (p *pendingWrite) runIn(tx *sql.Tx, savepoint bool) error {
	if !savepoint {
		p.err = p.call(tx)
		return p.err
	}
	ctx := context.Background()
	if _, err := tx.ExecContext(ctx, "SAVEPOINT pending"); err != nil {
		return err
	}
	if p.err = p.call(tx); p.err != nil {
		if _, err := tx.ExecContext(ctx, "ROLLBACK TO pending"); err != nil {
			return errors.Join(p.err, err)
		}
	}
	_, err := tx.ExecContext(ctx, "RELEASE pending")
	return err
}

// call runs the write and turns a panic into an error.
func (p *pendingWrite) call(tx *sql.Tx) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = panicError(fmt.Sprintf("write panicked: %v\n\n%s", r, debug.Stack()))
		}
	}()
	return p.run(tx)
}

// claim reports whether the caller of claim may now run or withdraw the write.
func (p *pendingWrite) claim() bool { return p.claimed.CompareAndSwap(false, true) }

// expired reports whether the write's context has ended, and then answers a caller that still waits.
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
