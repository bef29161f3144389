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
// SQLite has one writer, and with full durability a commit waits for the disk, which takes far longer than the
// statements do. So one goroutine owns the only writing connection and commits all writes that wait in one
// transaction: under load they share the cost of a single commit.
//
// Invariants:
//   - A caller is answered after its transaction has reached the disk, also when its own write failed: it may have
//     failed because of what another write of the batch had written.
//   - A write takes effect as a whole or not at all, and its failure never affects another's outcome. It may run
//     several times, so it must keep nothing from one run to the next.
//   - A caller whose context ends before its write begins is answered at once, and the write never runs. After that
//     the caller waits, because the running function uses the caller's variables.
//   - A statement that has begun is never cancelled (openWriter sees to it). SQLite answers an interrupted INSERT,
//     UPDATE or DELETE by rolling back the whole transaction, and with it the other writes of the batch.
//   - If SQLite rolls the transaction back by itself, as when the disk is full, no later statement of the batch may
//     run: outside a transaction each would be committed on its own. The connection refuses them with errRolledBack.
//
// A batch runs in up to three passes. The first has no savepoints, which would cost it a sixth of its time and are
// seldom needed. If a write fails, the batch is rolled back and runs again with a savepoint around each write. If a
// write breaks that transaction too, each write runs in a transaction of its own.

// maxBatch is how many writes one transaction takes.
const maxBatch = 64

// errExited is the error of a write that ended its goroutine by runtime.Goexit.
var errExited = errors.New("the write ended its goroutine")

// batchWriter is the only writer of a SQLite database; see the note above.
type batchWriter struct {
	*batchQueue[func(tx *sql.Tx) error]
	db *sql.DB
}

type pendingWrite = pending[func(tx *sql.Tx) error]

// newBatchWriter starts a writer, which runs until close.
func newBatchWriter(db *sql.DB) *batchWriter {
	w := &batchWriter{batchQueue: newBatchQueue[func(tx *sql.Tx) error](maxBatch), db: db}
	w.commit = w.commitBatch
	go w.serve()
	return w
}

// commitBatch answers every write of a batch, after up to three passes.
func (w *batchWriter) commitBatch(batch []*pendingWrite) {
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
	if errors.Is(err, errRolledBack) { // by a statement whose error the write ignored
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
// does, so runAll starts one for them.
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

// runIn runs a write and keeps its outcome in p.err. It returns an error if the transaction is broken.
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

// call runs a write and turns a panic into an error.
func call(p *pendingWrite, tx *sql.Tx) (err error) {
	defer recovered(&err)
	return p.work(tx)
}
