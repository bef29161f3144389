package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// notes is a store with a table for writes, and with a writer that the test controls.
type notes struct {
	*DB
	t *testing.T
}

func newNotes(t *testing.T) *notes {
	t.Helper()
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "service.db"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	n := &notes{DB: s, t: t}
	if err := s.Write(t.Context(), func(tx *sql.Tx) error {
		return n.run(tx,
			"CREATE TABLE notes (id BIGINT PRIMARY KEY)")
	}); err != nil {
		t.Fatal(err)
	}
	return n
}

func (n *notes) run(tx *sql.Tx, statement string, args ...any) error {
	_, err := tx.ExecContext(context.Background(), statement, args...)
	return err
}

func (n *notes) insert(tx *sql.Tx, id int) error {
	return n.run(tx, "INSERT INTO notes (id) VALUES ($1)", id)
}

// has reports, using another connection, whether a note is committed.
func (n *notes) has(id int) bool {
	n.t.Helper()
	var count int
	if err := n.reads.QueryRow("SELECT COUNT(*) FROM notes WHERE id = $1", id).Scan(&count); err != nil {
		n.t.Error(err)
	}
	return count == 1
}

// hold blocks the writer until release is called.
func (n *notes) hold() (release func()) {
	started, end := make(chan struct{}), make(chan struct{})
	go func() {
		_ = n.Write(context.Background(), func(*sql.Tx) error { close(started); <-end; return nil })
	}()
	<-started
	return sync.OnceFunc(func() { close(end) })
}

// behind starts a write and returns once it is queued behind the given number of others.
func (n *notes) behind(ctx context.Context, others int, f func(tx *sql.Tx) error) <-chan error {
	n.t.Helper()
	out := make(chan error, 1)
	go func() {
		defer func() {
			if r := recover(); r != nil {
				out <- fmt.Errorf("panic: %v", r)
			}
		}()
		out <- n.Write(ctx, f)
	}()
	n.until(func() bool { return len(n.batches.writes) == others+1 })
	return out
}

func (n *notes) until(holds func() bool) {
	n.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			n.t.Fatal("the condition did not become true in time")
		}
	}
}

// Queued writes share one transaction. It runs again if one of them fails, and each write has its own outcome.
func TestBatchWriter_WritesFailAlone(t *testing.T) {
	n := newNotes(t)
	own := errors.New("its own error")
	release := n.hold()
	defer release()
	shared := map[*sql.Tx]bool{}
	in := func(f func(tx *sql.Tx) error) func(tx *sql.Tx) error {
		return func(tx *sql.Tx) error { shared[tx] = true; return f(tx) }
	}
	write := func(id int) func(tx *sql.Tx) error { return in(func(tx *sql.Tx) error { return n.insert(tx, id) }) }
	withdrawn, cancel := context.WithCancel(t.Context())
	outcomes := []<-chan error{
		n.behind(t.Context(), 0, write(1)),
		n.behind(t.Context(), 1, in(func(tx *sql.Tx) error { return errors.Join(n.insert(tx, 2), own) })),
		n.behind(t.Context(), 2, in(func(tx *sql.Tx) error { _ = n.insert(tx, 3); panic("it fell over") })),
		n.behind(withdrawn, 3, write(4)),
		n.behind(t.Context(), 4, write(1)),
		n.behind(t.Context(), 5, write(6)),
	}
	cancel()
	if err := <-outcomes[3]; !errors.Is(err, context.Canceled) { // while the writer is still busy
		t.Errorf("a write whose caller left: got %v, want context.Canceled", err)
	}
	release()
	for i, right := range map[int]func(error) bool{
		0: func(err error) bool { return err == nil }, 5: func(err error) bool { return err == nil },
		1: func(err error) bool { return errors.Is(err, own) }, 4: IsDuplicate,
		2: func(err error) bool {
			return err != nil && strings.Contains(err.Error(), "it fell over") && strings.Contains(err.Error(),
				"batchwriter_test.go")
		},
	} {
		if err := <-outcomes[i]; !right(err) {
			t.Errorf("write %d has the wrong outcome: %v", i, err)
		}
	}
	for id, want := range map[int]bool{1: true, 2: false, 3: false, 4: false, 6: true} {
		if n.has(id) != want {
			t.Errorf("note %d exists: %v, want the opposite", id, !want)
		}
	}
	if len(shared) != 2 {
		t.Errorf("the queued writes ran in %d transactions, want 2", len(shared))
	}
}

// If the context of a running statement ends, the other writes of its batch are not affected.
func TestBatchWriter_SurvivesEndOfContext(t *testing.T) {
	n := newNotes(t)
	release := n.hold()
	defer release()
	ctx, cancel := context.WithCancel(t.Context())
	late, lateCancel := context.WithCancel(t.Context())
	first := n.behind(t.Context(), 0, func(tx *sql.Tx) error { return n.insert(tx, 1) })
	slow := n.behind(ctx, 1, func(tx *sql.Tx) error {
		timer := time.AfterFunc(5*time.Millisecond, cancel)
		defer timer.Stop()
		_, err := tx.ExecContext(ctx,
			`INSERT INTO notes (id) WITH RECURSIVE c (x) AS (SELECT 100 UNION ALL SELECT x + 1 FROM c WHERE x < 30000) SELECT x FROM c`)
		cancel()
		return err
	})
	between := n.behind(late, 2, func(tx *sql.Tx) error {
		if err := n.insert(tx, 3); err != nil {
			return err
		}
		lateCancel()
		_, err := tx.ExecContext(late, "INSERT INTO notes (id) VALUES (4)")
		return err
	})
	last := n.behind(t.Context(), 3, func(tx *sql.Tx) error { return n.insert(tx, 5) })
	release()
	if err := errors.Join(<-first, <-last); err != nil {
		t.Errorf("the other writes of the batch: %v", err)
	}
	err := <-slow
	if err != nil && !errors.Is(err, context.Canceled) { // the context may have ended before the statement began
		t.Errorf("the slow write: got %v, want success or context.Canceled", err)
	}
	if err := <-between; !errors.Is(err, context.Canceled) {
		t.Errorf("a write whose context ended between statements: got %v, want context.Canceled", err)
	}
	for id, want := range map[int]bool{1: true, 100: err == nil, 30000: err == nil, 3: false, 4: false, 5: true} {
		if n.has(id) != want {
			t.Errorf("note %d exists: %v, want the opposite", id, !want)
		}
	}
}

// The writer's connection never cancels a running statement.
func TestWriterConn_NeverCancelsStatements(t *testing.T) {
	n := newNotes(t)
	for delay := time.Millisecond; delay < 10*time.Second; delay *= 2 {
		ctx, cancel := context.WithCancel(t.Context())
		timer := time.AfterFunc(delay, cancel)
		_, err := n.writes.ExecContext(ctx,
			`WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 300000) INSERT INTO notes (id) SELECT max(x) FROM c`)
		timer.Stop()
		ended := ctx.Err() != nil
		cancel()
		if err == nil && ended && n.has(300000) {
			return
		}
		if err := n.Write(t.Context(), func(tx *sql.Tx) error { return n.run(tx, "DELETE FROM notes") }); err != nil {
			t.Fatal(err)
		}
	}
	t.Error("no statement ran longer than its context")
}

// A write that ends the whole transaction without returning an error only delays the other writes.
func TestBatchWriter_RollbackThatWriteIgnored(t *testing.T) {
	n := newNotes(t)
	release := n.hold()
	defer release()
	first := n.behind(t.Context(), 0, func(tx *sql.Tx) error { return n.insert(tx, 1) })
	breaker := n.behind(t.Context(), 1, func(tx *sql.Tx) error { return n.run(tx, "ROLLBACK") })
	release()
	if err := <-breaker; !errors.Is(err, errRolledBack) {
		t.Errorf("the write that broke the transaction: got %v, want errRolledBack", err)
	}
	if err := <-first; err != nil || !n.has(1) {
		t.Errorf("the other write: got error %v, want it committed", err)
	}
}

// A write that ends the whole transaction, as SQLite does when the disk is full, only delays the other writes.
func TestBatchWriter_RerunsBrokenBatch(t *testing.T) {
	n := newNotes(t)
	release := n.hold()
	defer release()
	first := n.behind(t.Context(), 0, func(tx *sql.Tx) error { return n.insert(tx, 1) })
	breaker := n.behind(t.Context(), 1, func(tx *sql.Tx) error {
		return errors.Join(n.run(tx, "ROLLBACK"),
			errors.New("broke it"))
	})
	last := n.behind(t.Context(), 2, func(tx *sql.Tx) error { return n.insert(tx, 3) })
	release()
	if err := <-breaker; err == nil || !strings.Contains(err.Error(), "broke it") {
		t.Errorf("the write that broke the transaction: got %v, want its own error", err)
	}
	if err := errors.Join(<-first, <-last); err != nil || !n.has(1) || !n.has(3) {
		t.Errorf("the other writes: got error %v, want both committed", err)
	}
}

// The queue is bounded, and a caller that waits for space in it can give up.
func TestBatchWriter_QueueIsBounded(t *testing.T) {
	n := newNotes(t)
	release := n.hold()
	defer release()
	var waiting sync.WaitGroup
	for i := range maxQueued {
		waiting.Go(func() {
			if err := n.Write(context.Background(), func(tx *sql.Tx) error { return n.insert(tx, i) }); err != nil {
				t.Error(err)
			}
		})
	}
	n.until(func() bool { return len(n.batches.writes) == maxQueued })
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := n.Write(ctx, func(tx *sql.Tx) error { return n.insert(tx, -1) }); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a write into a full queue: got %v, want context.DeadlineExceeded", err)
	}
	release()
	waiting.Wait()
	if n.has(-1) || !n.has(0) || !n.has(maxQueued-1) {
		t.Error("the committed notes differ from the queued ones")
	}
}

func TestClose_CommitsQueuedWrites(t *testing.T) {
	n := newNotes(t)
	release := n.hold()
	outcomes := []<-chan error{}
	for i := range 10 {
		outcomes = append(outcomes, n.behind(t.Context(), i, func(tx *sql.Tx) error { return n.insert(tx, i) }))
	}
	file := n.path()
	closed := make(chan error, 1)
	go func() { closed <- n.Close() }()
	release()
	for i, out := range outcomes {
		if err := <-out; err != nil {
			t.Errorf("write %d: %v", i, err)
		}
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if err := n.Write(t.Context(), func(*sql.Tx) error { t.Error("it runs"); return nil }); !errors.Is(err, errClosed) {
		t.Errorf("a write after close: got %v, want errClosed", err)
	}
	again, err := Attach(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if n.DB = again; !n.has(0) || !n.has(9) {
		t.Error("a queued write is missing from the file")
	}
}

func (n *notes) path() (file string) {
	n.t.Helper()
	if err := n.reads.QueryRow("SELECT file FROM pragma_database_list WHERE name = 'main'").Scan(&file); err != nil {
		n.t.Fatal(err)
	}
	return file
}
