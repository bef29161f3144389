package db

import (
	"context"
	"database/sql"
	"sync"
)

// maxShared is the maximum number of concurrent shared transactions on PostgreSQL. It leaves connections for other
// work even if another server has locked the rows of many keys.
const maxShared = maxConns / 2

// sharedWriters has a batchWriter for each key of WriteShared that is in use.
type sharedWriters struct {
	slots chan struct{} // one for each shared transaction

	mu      sync.Mutex
	closed  bool
	byKey   map[string]*sharedWriter
	writers sync.WaitGroup
}

type sharedWriter struct {
	*batchWriter
	callers int
}

func newSharedWriters() *sharedWriters {
	return &sharedWriters{slots: make(chan struct{}, maxShared), byKey: map[string]*sharedWriter{}}
}

// WriteShared is like Write, for writes that wait for each other because they lock the same row, such as an account's
// balance. On PostgreSQL, writes with the same key run one after another in shared transactions, so that they share
// the cost of a commit. On SQLite, every write does so. f must use the context that it is passed, which does not end
// with ctx.
func (d *DB) WriteShared(ctx context.Context, key string, f func(ctx context.Context, tx *sql.Tx) error) error {
	return d.Retry(ctx, func() error {
		if !d.Postgres() {
			return d.batches.do(ctx, f)
		}
		w, err := d.shared.acquire(d, key)
		if err != nil {
			return err
		}
		defer d.shared.release(key, w)
		return w.do(ctx, f)
	})
}

// WriteTogether is like WriteShared for several writes of one batch, and returns the outcome of each. Tests use it.
func (d *DB) WriteTogether(writes ...func(ctx context.Context, tx *sql.Tx) error) []error {
	batch := make([]*pendingWrite, len(writes))
	for i, f := range writes {
		batch[i] = &pendingWrite{ctx: context.Background(), work: f, done: make(chan struct{})}
	}
	(&batchWriter{d: d}).commitBatch(batch)
	errs := make([]error, len(batch))
	for i, p := range batch {
		errs[i] = p.err
	}
	return errs
}

// acquire returns the writer of a key, until release.
func (s *sharedWriters) acquire(d *DB, key string) (*sharedWriter, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	w := s.byKey[key]
	if w == nil {
		w = &sharedWriter{batchWriter: newBatchWriter(d)}
		s.byKey[key] = w
		s.writers.Go(func() { <-w.stopped })
	}
	w.callers++
	return w, nil
}

func (s *sharedWriters) release(key string, w *sharedWriter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.callers--; w.callers == 0 {
		delete(s.byKey, key)
		w.close()
	}
}

// close waits for the writes in progress. After that, writes fail with errClosed.
func (s *sharedWriters) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.writers.Wait()
}

// sharedContext returns the context of a batch's transaction. On SQLite it does not end, because an interrupted
// statement would roll back the transaction.
func (d *DB) sharedContext() (context.Context, context.CancelFunc) {
	if !d.Postgres() {
		return context.Background(), func() {}
	}
	return context.WithTimeout(context.Background(), sharedTimeout)
}

// beginShared begins a batch's transaction. The caller must call done after the transaction ends.
func (d *DB) beginShared(ctx context.Context) (tx *sql.Tx, done func(), err error) {
	done = func() {}
	if d.Postgres() {
		select {
		case d.shared.slots <- struct{}{}:
			done = func() { <-d.shared.slots }
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
	if tx, err = d.writes.BeginTx(ctx, nil); err != nil {
		done()
		return nil, nil, err
	}
	return tx, done, nil
}

// mustWait reports whether the writes of a batch that failed with err would fail again if they ran immediately. This
// is the case if PostgreSQL is unreachable or another transaction holds a lock.
func (d *DB) mustWait(err error) bool { return d.Postgres() && (isConflict(err) || isUnavailable(err)) }
