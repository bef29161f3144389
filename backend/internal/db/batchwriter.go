package db

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// Write batching
//
// With full durability a commit waits for the disk, which takes far longer than the statements themselves. A
// batchWriter commits all pending writes in one transaction: under load they share the cost of a single commit. On
// SQLite, which allows one writer, one batchWriter owns the only writing connection and runs every write. On
// PostgreSQL, WriteShared has one for each key in use; all other writes have transactions of their own.
//
// Invariants:
//   - A caller returns only after its transaction has reached the disk, even if its own write failed, because the
//     cause may be data from another write of the batch.
//   - A write takes effect completely or not at all, and its failure never affects the outcome of another. It may run
//     several times, so it must not keep state from one run to the next.
//   - If a caller's context ends before its write starts, the caller returns immediately and the write never runs.
//     After that the caller waits, because the running function uses the caller's variables.
//   - A statement that has started is never cancelled by a caller. On SQLite, openWriter ensures this: if an INSERT,
//     UPDATE or DELETE is interrupted, SQLite rolls back the whole transaction, including the other writes of the
//     batch. On PostgreSQL, writes run with the context of their transaction.
//   - If SQLite itself rolls the transaction back, for example when the disk is full, no later statement of the batch
//     may run: outside a transaction each would commit separately. The connection refuses them with errRolledBack.
//
// A batch runs in up to three passes. The first pass uses no savepoints, because they are rarely needed and would
// make it a sixth slower. If a write fails, the batch is rolled back and runs again with a savepoint around each
// write. If a write breaks that transaction too, each write runs in its own transaction. If PostgreSQL is unreachable
// or another server holds a lock, no pass follows: each caller tries again.

const (
	// maxBatch is the maximum number of writes per transaction.
	maxBatch = 64
	// sharedTimeout limits a shared transaction on PostgreSQL.
	sharedTimeout = 10 * time.Second
)

// errExited is the error of a write that ended its goroutine with runtime.Goexit.
var errExited = errors.New("the write ended its goroutine")

// batchWriter commits writes in batches. See "Write batching" above.
type batchWriter struct {
	d *DB
	queue
}

// newBatchWriter starts a writer that runs until its queue is closed.
func newBatchWriter(d *DB) *batchWriter {
	w := &batchWriter{d: d, queue: newQueue()}
	go w.serve(w.commitBatch)
	return w
}

// commitBatch completes every write of a batch, in up to three passes.
func (w *batchWriter) commitBatch(batch []*pendingWrite) {
	for _, p := range w.attempt(w.attempt(batch, false), true) {
		w.attempt([]*pendingWrite{p}, false)
	}
}

// attempt runs a batch in one transaction and completes its writes. If a write breaks the transaction, attempt
// completes none and returns the writes to run again. Without savepoints, every failure breaks the transaction. A
// batch of one write is always completed. Writes are claimed only when they run, because BEGIN may take long while
// another process locks the database.
func (w *batchWriter) attempt(batch []*pendingWrite, savepoints bool) (undecided []*pendingWrite) {
	if batch = slices.DeleteFunc(batch, (*pendingWrite).expired); len(batch) == 0 {
		return nil
	}
	ctx, cancel := w.d.sharedContext()
	defer cancel()
	tx, done, err := w.d.beginShared(ctx)
	if err != nil {
		failUnclaimed(batch, err)
		return nil
	}
	defer done()
	ran, rest, broken := runAll(ctx, batch, tx, savepoints)
	if broken == nil {
		err = w.d.commit(ctx, tx)
		w.active = len(ran) + len(w.writes)
	}
	if isAny(err, errRolledBack, pgx.ErrTxCommitRollback) { // a statement failed, but the write ignored the error
		broken = err
	}
	if broken != nil {
		broken = errors.Join(broken, ignoreDone(tx.Rollback()))
		if len(batch) > 1 && !w.d.mustWait(broken) {
			for _, p := range ran {
				p.claimed.Store(false) // it must run again
			}
			return append(ran, rest...)
		}
		failUnclaimed(rest, broken)
		err = broken
	}
	if err != nil {
		err = errors.Join(err, ignoreDone(tx.Rollback()))
	}
	for _, p := range ran {
		p.answer(cmp.Or(err, p.err))
	}
	return nil
}

// failUnclaimed completes writes that have not run.
func failUnclaimed(batch []*pendingWrite, err error) {
	for _, p := range batch {
		if p.claim() {
			p.answer(err)
		}
	}
}

// runAll runs the writes in order until one breaks the transaction. It uses a separate goroutine, because a write may
// end its goroutine, as t.FailNow does.
func runAll(
	ctx context.Context, batch []*pendingWrite, tx *sql.Tx, savepoints bool,
) (ran, rest []*pendingWrite, broken error) {
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		broken = errExited
		for i, p := range batch {
			if p.expired() || !p.claim() {
				continue
			}
			ran, rest = append(ran, p), batch[i+1:]
			if err := runIn(ctx, p, tx, savepoints); err != nil {
				broken = err
				return
			}
		}
		broken = nil
	}()
	<-exited
	return ran, rest, broken
}

// runIn runs a write and records its outcome in p.err. It returns an error if the transaction is broken.
func runIn(ctx context.Context, p *pendingWrite, tx *sql.Tx, savepoint bool) error {
	if !savepoint {
		p.err = call(ctx, p, tx)
		return p.err
	}
	if _, err := tx.ExecContext(ctx, "SAVEPOINT pending"); err != nil {
		return err
	}
	if p.err = call(ctx, p, tx); p.err != nil {
		if _, err := tx.ExecContext(ctx, "ROLLBACK TO pending"); err != nil {
			return errors.Join(p.err, err)
		}
	}
	_, err := tx.ExecContext(ctx, "RELEASE pending")
	return err
}

// call runs a write and converts a panic to an error.
func call(ctx context.Context, p *pendingWrite, tx *sql.Tx) (err error) {
	defer recovered(&err)
	return p.work(ctx, tx)
}
