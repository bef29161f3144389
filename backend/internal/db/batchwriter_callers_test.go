package db

import (
	"context"
	"database/sql"
	"errors"
	"runtime"
	"testing"
)

// If a caller's context ends while another process locks the database, the caller returns and its write never runs.
func TestBatchWriter_CallerLeavesWhileDatabaseIsLocked(t *testing.T) {
	n := newNotes(t)
	other, err := sql.Open("sqlite", sqliteDSN(n.path(), "immediate"))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	lock, err := other.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Rollback()
	ctx, cancel := context.WithCancel(t.Context())
	leaver, stayer := make(chan error, 1), make(chan error, 1)
	go func() { leaver <- n.Write(ctx, func(tx *sql.Tx) error { return n.insert(tx, 1) }) }()
	n.until(func() bool { return n.writes.Stats().InUse == 1 }) // for its BEGIN
	go func() { stayer <- n.Write(t.Context(), func(tx *sql.Tx) error { return n.insert(tx, 2) }) }()
	cancel()
	if err := <-leaver; !errors.Is(err, context.Canceled) {
		t.Errorf("the cancelled caller got %v, want context.Canceled", err)
	}
	if err := lock.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := <-stayer; err != nil || n.has(1) || !n.has(2) {
		t.Errorf("the other caller got %v, want success; the cancelled write took effect: %v", err, n.has(1))
	}
}

// If a write panicked in a batch that was rolled back, and its caller left before it ran again, no panic remains.
func TestBatchWriter_ForgetsPanicThatWasRolledBack(t *testing.T) {
	n := newNotes(t)
	release := n.hold()
	defer release()
	ctx, cancel := context.WithCancel(t.Context())
	panicker := n.behind(ctx, 0, func(*sql.Tx) error { cancel(); panic("it fell over") })
	breaker := n.behind(t.Context(), 1, func(tx *sql.Tx) error {
		return errors.Join(n.run(tx, "ROLLBACK"),
			errors.New("broke it"))
	})
	release()
	<-breaker
	if err := <-panicker; !errors.Is(err, context.Canceled) {
		t.Errorf("the caller got %v, want context.Canceled", err)
	}
}

// A write that ends its goroutine, as t.FailNow does, fails without affecting others.
func TestBatchWriter_SurvivesWriteThatEndsItsGoroutine(t *testing.T) {
	n := newNotes(t)
	release := n.hold()
	defer release()
	first := n.behind(t.Context(), 0, func(tx *sql.Tx) error { return n.insert(tx, 1) })
	ender := n.behind(t.Context(), 1, func(tx *sql.Tx) error { _ = n.insert(tx, 2); runtime.Goexit(); return nil })
	last := n.behind(t.Context(), 2, func(tx *sql.Tx) error { return n.insert(tx, 3) })
	release()
	if err := errors.Join(<-first, <-last); err != nil {
		t.Errorf("the other writes of the batch: %v", err)
	}
	if err := <-ender; !errors.Is(err, errExited) {
		t.Errorf("the caller got %v, want errExited", err)
	}
	if err := n.Write(t.Context(), func(*sql.Tx) error { runtime.Goexit(); return nil }); !errors.Is(err, errExited) {
		t.Errorf("in a batch by itself the caller got %v, want errExited", err)
	}
	if err := n.Write(t.Context(), func(tx *sql.Tx) error { return n.insert(tx, 4) }); err != nil {
		t.Errorf("a later write: %v", err)
	}
	for id, want := range map[int]bool{1: true, 2: false, 3: true, 4: true} {
		if n.has(id) != want {
			t.Errorf("note %d exists: %v, want the opposite", id, !want)
		}
	}
}
