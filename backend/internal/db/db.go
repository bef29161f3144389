// Package db opens the database, SQLite or PostgreSQL, migrates it, and runs the statements of the features. Both
// engines share the statements: times are BIGINT milliseconds, JSON is TEXT, placeholders are $1. Each feature keeps
// its statements in its own package, in a Store that embeds a DB.
package db

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"os"
	"slices"
	"strconv"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// DB is an open database. Reads use a pool; every change uses Write, WriteShared or Exec.
type DB struct {
	reads         *sql.DB
	writes        *sql.DB
	batches       *batchWriter   // runs every write on SQLite
	shared        *sharedWriters // run the writes of WriteShared on PostgreSQL
	path          string         // path of a SQLite file
	file          os.FileInfo
	tracksCommits bool // whether PostgreSQL can report the outcome of a transaction
	dropping      sync.Mutex

	prepared sync.Map // *sql.Stmt of QueryPrepared, by text
}

// Postgres reports whether the database is PostgreSQL rather than SQLite.
func (d *DB) Postgres() bool { return d.shared != nil }

// QueryContext reads with the pool for reads.
func (d *DB) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return d.reads.QueryContext(ctx, query, args...)
}

// QueryRowContext reads a row with the pool for reads.
func (d *DB) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	return d.reads.QueryRowContext(ctx, query, args...)
}

// Write runs f in a transaction that is committed before Write returns nil. f may run several times if the database or
// another write of its batch requires it, so it must keep no state between runs and must return its first error. It
// must not call Write itself: on SQLite the two would wait for each other. Inserting a row that references a project or
// an account that has just been deleted fails with ErrNoProject.
func (d *DB) Write(ctx context.Context, f func(tx *sql.Tx) error) error {
	return d.Retry(ctx, func() error { return d.writeOnce(ctx, f) })
}

// Exec is like Write for a single statement, and returns the number of rows that it changed. On PostgreSQL it needs one
// round trip instead of three, but if the connection is lost, the statement may run again after it took effect. The
// error starts with purpose.
func (d *DB) Exec(ctx context.Context, purpose, statement string, args ...any) (n int64, err error) {
	if d.Postgres() {
		var result sql.Result
		err = d.Retry(ctx, func() (err error) {
			result, err = d.writes.ExecContext(ctx, statement, args...)
			return err
		})
		return rowsChanged(result, err, purpose)
	}
	err = d.Write(ctx, func(tx *sql.Tx) error {
		n, err = ExecCount(ctx, tx, purpose, statement, args...)
		return err
	})
	return n, err
}

func (d *DB) writeOnce(ctx context.Context, f func(tx *sql.Tx) error) error {
	if !d.Postgres() {
		return d.batches.do(ctx, func(_ context.Context, tx *sql.Tx) error { return f(tx) })
	}
	tx, err := d.writes.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := f(tx); err != nil {
		return errors.Join(err, ignoreDone(tx.Rollback()))
	}
	return d.commit(ctx, tx)
}

// pointRead returns the context for reading one row. On SQLite, such a read is too short to be cancelled, and
// watching a context costs as much as the read itself.
func (d *DB) pointRead(ctx context.Context) context.Context {
	if d.Postgres() || ctx.Err() != nil {
		return ctx
	}
	return context.WithoutCancel(ctx)
}

// TruncateJournal also removes deleted data from SQLite's journal, where an idle server would keep it indefinitely. A
// long read prevents that: while TruncateJournal waits for such a read, it blocks other writes, for at most a tenth of
// a second, and then returns ErrJournalBusy.
func (d *DB) TruncateJournal(ctx context.Context) error {
	if d.Postgres() {
		return nil
	}
	conn, err := d.writes.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx = context.WithoutCancel(ctx)
	if _, err := conn.ExecContext(ctx, "PRAGMA busy_timeout = 100"); err != nil {
		return err
	}
	var busy, pages, copied int
	err = conn.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &pages, &copied)
	_, restoreErr := conn.ExecContext(ctx, "PRAGMA busy_timeout = "+strconv.Itoa(busyTimeout))
	if busy != 0 {
		err = cmp.Or(err, ErrJournalBusy)
	}
	return errors.Join(err, restoreErr)
}

// ErrJournalBusy is returned if a read keeps deleted data in SQLite's journal.
var ErrJournalBusy = errors.New("the journal cannot be truncated during a read: try again when it has ended")

func ignoreDone(err error) error {
	if errors.Is(err, sql.ErrTxDone) {
		return nil
	}
	return err
}

// IsDuplicate reports whether a unique constraint rejected a row.
func IsDuplicate(err error) bool {
	return isConstraint(err, "23505", sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY)
}

// isOrphan reports whether a foreign key rejected a row.
func isOrphan(err error) bool {
	return isConstraint(err, "23503", sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY)
}

func isConstraint(err error, postgresCode string, sqliteCodes ...int) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code == postgresCode
	}
	var lite *sqlite.Error
	return errors.As(err, &lite) && slices.Contains(sqliteCodes, lite.Code())
}
