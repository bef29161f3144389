package db_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/db"
	"github.com/service-dev/service/backend/internal/dbtest"
	"github.com/service-dev/service/test/enginetest"
)

// setting returns a write that inserts a setting.
func setting(name string) func(ctx context.Context, tx *sql.Tx) error {
	return func(ctx context.Context, tx *sql.Tx) error {
		return db.Exec(ctx, tx, "insert setting", `INSERT INTO settings (name, value) VALUES ($1, 'x')`, name)
	}
}

func isStored(t *testing.T, d *db.DB, name string) bool {
	t.Helper()
	found, err := db.Exists(t.Context(), d, `SELECT 1 FROM settings WHERE name = $1`, name)
	must(t, err)
	return found
}

// Writes of one transaction fail alone.
func TestWriteTogether_WritesFailAlone(t *testing.T) {
	dbtest.EachEngine(t, func(t *testing.T, database func(t *testing.T) string) {
		d := dbtest.OpenAt(t, database(t))
		defer d.Close()
		own := errors.New("its own error")
		errs := d.WriteTogether(
			setting("first"),
			func(ctx context.Context, tx *sql.Tx) error { return errors.Join(setting("failed")(ctx, tx), own) },
			setting("first"),
			func(ctx context.Context, tx *sql.Tx) error { _ = setting("panicked")(ctx, tx); panic("it fell over") },
			func(ctx context.Context, tx *sql.Tx) error { _ = setting("first")(ctx, tx); return nil }, // ignores its error
			setting("last"))
		if errs[0] != nil || !errors.Is(errs[1], own) || !db.IsDuplicate(errs[2]) || errs[3] == nil || errs[5] != nil {
			t.Errorf("got outcomes %v, want only the first and the last to succeed", errs)
		}
		for name, want := range map[string]bool{"first": true, "failed": false, "panicked": false, "last": true} {
			if isStored(t, d, name) != want {
				t.Errorf("setting %q is stored: %v, want %v", name, !want, want)
			}
		}
	})
}

// While another server locks a row, the writes that need it share a transaction, and writes of another key do not wait.
func TestWriteShared_LockedRow(t *testing.T) {
	where := dbtest.Postgres(t)
	d, client := dbtest.OpenAt(t, where), enginetest.Connect(t, where)
	defer d.Close()
	dbtest.AddAccount(t, d, "ada")
	const lockAda = "UPDATE accounts SET state = state WHERE id = 'ada'"
	other, err := client.BeginTx(t.Context(), nil)
	must(t, err)
	_, err = other.ExecContext(t.Context(), lockAda)
	must(t, err)
	transactions := make(chan string, 100)
	lock := func(ctx context.Context, tx *sql.Tx) error {
		if err := db.Exec(ctx, tx, "lock account", lockAda); err != nil {
			return err
		}
		id, err := db.QueryValue[string](ctx, tx, `SELECT pg_current_xact_id()::text`)
		transactions <- id
		return err
	}
	outcomes := make(chan error, 10)
	for range cap(outcomes) {
		go func() { outcomes <- d.WriteShared(t.Context(), "ada", lock) }()
	}
	dbtest.AwaitLock(t, client)
	must(t, d.WriteShared(t.Context(), "bob", setting("bob")))
	left, leave := context.WithCancel(t.Context())
	leave()
	if err := d.WriteShared(left, "ada", setting("left")); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that left got %v, want context.Canceled", err)
	}
	must(t, other.Rollback())
	for range cap(outcomes) {
		must(t, <-outcomes)
	}
	close(transactions)
	distinct := map[string]bool{}
	for id := range transactions {
		distinct[id] = true
	}
	if len(distinct) >= cap(outcomes) {
		t.Errorf("%d writes used %d transactions, want fewer", cap(outcomes), len(distinct))
	}
	if isStored(t, d, "left") {
		t.Error("the write of a caller that left took effect")
	}
}

// A shared transaction whose connection is lost at the commit takes effect once.
func TestWriteShared_ConnectionLost(t *testing.T) {
	where := dbtest.Postgres(t)
	c := &cutter{}
	d := dbtest.OpenAt(t, c.way(t, where))
	defer d.Close()
	c.before.Store(1)
	must(t, d.WriteShared(t.Context(), "key", setting("before")))
	c.after.Store(1)
	must(t, d.WriteShared(t.Context(), "key", setting("after")))
	if !isStored(t, d, "before") || !isStored(t, d, "after") || c.before.Load()+c.after.Load() != 0 {
		t.Error("a setting is missing, or no connection was lost")
	}
}

// Close waits for shared writes in progress, and later ones fail.
func TestClose_SharedWrites(t *testing.T) {
	dbtest.EachEngine(t, func(t *testing.T, database func(t *testing.T) string) {
		where := database(t)
		d := dbtest.OpenAt(t, where)
		started, proceed, outcome := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		go func() {
			outcome <- d.WriteShared(t.Context(), "key", func(ctx context.Context, tx *sql.Tx) error {
				close(started)
				<-proceed
				return setting("slow")(ctx, tx)
			})
		}()
		<-started
		closed := make(chan error, 1)
		go func() { closed <- d.Close() }()
		select {
		case err := <-closed:
			t.Errorf("Close returned %v during a write", err)
		default:
		}
		close(proceed)
		must(t, <-outcome)
		must(t, <-closed)
		if d.WriteShared(t.Context(), "key", setting("late")) == nil {
			t.Error("a write after Close succeeded")
		}
		again := dbtest.OpenAt(t, where)
		defer again.Close()
		if !isStored(t, again, "slow") || isStored(t, again, "late") {
			t.Error("the stored settings differ from the outcomes")
		}
	})
}

// ExecUnordered keeps the arguments of its statements apart.
func TestExecUnordered(t *testing.T) {
	dbtest.EachEngine(t, func(t *testing.T, database func(t *testing.T) string) {
		d := dbtest.OpenAt(t, database(t))
		defer d.Close()
		dbtest.AddAccount(t, d, "ada")
		must(t, d.Write(t.Context(), func(tx *sql.Tx) error {
			insert := `INSERT INTO settings (value, name) VALUES ($2, $1)`
			return d.ExecUnordered(t.Context(), tx, "write", db.Stmt(insert, "a", "1"), db.Stmt(insert, "b", "2"),
				db.Stmt(`UPDATE accounts SET email = $2 WHERE id = $1`, "ada", "new@example.org"), db.Stmt(insert, "c", "3"))
		}))
		values, err := db.All(t.Context(), d, db.Value[string], `SELECT name || value FROM settings
			WHERE name IN ('a', 'b', 'c') ORDER BY name`)
		must(t, err)
		if len(values) != 3 || values[0] != "a1" || values[1] != "b2" || values[2] != "c3" {
			t.Errorf("got settings %v, want a1, b2 and c3", values)
		}
		ada, err := account.NewStore(d).AccountByID(t.Context(), "ada")
		if err != nil || ada.Email != "new@example.org" {
			t.Errorf("got account %+v (error %v), want the new address", ada, err)
		}
	})
}
