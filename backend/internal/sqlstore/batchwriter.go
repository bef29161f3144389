package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"
)

// Write batching of SQLite
//
// SQLite allows one writer, and with full durability a commit waits for the disk, which takes far longer than the
// statements themselves. So one goroutine owns the only writing connection and commits all pending writes in one
// transaction: under load they share the cost of a single commit.
//
// Invariants:
//   - A caller returns only after its transaction has reached the disk, even if its own write failed, because the
//     cause may be data from another write of the batch.
//   - A write takes effect completely or not at all, and its failure never affects the outcome of another. It may run
//     several times, so it must not keep state from one run to the next.
//   - If a caller's context ends before its write starts, the caller returns immediately and the write never runs.
//     After that the caller waits, because the running function uses the caller's variables.
//   - A statement that has started is never cancelled; openWriter ensures this. If an INSERT, UPDATE or DELETE is
//     interrupted, SQLite rolls back the whole transaction, including the other writes of the batch.
//   - If SQLite itself rolls the transaction back, for example when the disk is full, no later statement of the batch
//     may run: outside a transaction each would commit separately. The connection refuses them with errRolledBack.
//
// A batch runs in up to three passes. The first has no savepoints, because they are rarely needed and would add a sixth
// to its duration. If a write fails, the batch is rolled back and runs again with a savepoint around each write. If a
// write breaks that transaction too, each write runs in its own transaction.

// maxBatch is the maximum number of writes per transaction.
const maxBatch = 64

// errExited is the error of a write that ended its goroutine with runtime.Goexit.
var errExited = errors.New("the write ended its goroutine")

// batchWriter is the only writer to a SQLite database; see "Write batching of SQLite" above.
type batchWriter struct {
	*batchQueue[func(tx *sql.Tx) error]
	db *sql.DB
}

type pendingWrite = pending[func(tx *sql.Tx) error]

// newBatchWriter starts a writer that runs until close.
func newBatchWriter(db *sql.DB) *batchWriter {
	w := &batchWriter{batchQueue: newBatchQueue[func(tx *sql.Tx) error](maxBatch), db: db}
	w.commit = w.commitBatch
	go w.serve()
	return w
}

// commitBatch completes every write of a batch, in up to three passes.
func (w *batchWriter) commitBatch(batch []*pendingWrite) {
	for _, p := range w.attempt(w.attempt(batch, false), true) {
		w.attempt([]*pendingWrite{p}, false)
	}
}

// attempt runs a batch in one transaction and completes its writes. If a write breaks the transaction, attempt
// completes none and returns the writes to run again; without savepoints, every failure breaks the transaction. A batch
// of one write is always completed. Writes are claimed only when they run, because BEGIN may take long while another
// process locks the database.
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
	if errors.Is(err, errRolledBack) { // a statement failed, but the write ignored the error
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

// runAll runs the writes in order until one breaks the transaction. It uses a separate goroutine, because a write may
// end its goroutine, as t.FailNow does.
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
			if err := runIn(p, tx, savepoints); err != nil {
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
func runIn(p *pendingWrite, tx *sql.Tx, savepoint bool) error {
	if !savepoint {
		p.err = call(p, tx)
		return p.err
	}
	ctx := context.Background()
	if _, err := tx.ExecContext(ctx, "SAVEPOINT pending"); err != nil {
		return err
	}
	if p.err = call(p, tx); p.err != nil {
		if _, err := tx.ExecContext(ctx, "ROLLBACK TO pending"); err != nil {
			return errors.Join(p.err, err)
		}
	}
	_, err := tx.ExecContext(ctx, "RELEASE pending")
	return err
}

// call runs a write and converts a panic to an error.
func call(p *pendingWrite, tx *sql.Tx) (err error) {
	defer recovered(&err)
	return p.work(tx)
}
