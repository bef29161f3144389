// Package sqlstore contains every SQL statement of the backend. SQLite and PostgreSQL share the statements: times are
// BIGINT milliseconds, JSON is TEXT, placeholders are $1. The package uses the types of the features, but does not
// implement their rules.
package sqlstore

import (
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

// Store is an open database. Reads use a pool; every change uses write or exec.
type Store struct {
	reads         *sql.DB
	writes        *sql.DB
	batches       *batchWriter // for SQLite; nil on PostgreSQL, where each write has its own transaction
	credit        *batchQueue[*creditOp]
	contended     *batchQueue[*creditOp] // for PostgreSQL: writes that wait for locks of other servers
	codes         *batchQueue[newCode]   // for PostgreSQL; nil on SQLite, where batches share commits
	engine        string                 // sqlite | postgres
	path          string                 // path of a SQLite file
	file          os.FileInfo
	tracksCommits bool // whether PostgreSQL can report the outcome of a transaction
	dropping      sync.Mutex

	prepared sync.Map // *sql.Stmt of pointQuery, by text

	contending contending
}

// write runs f in a transaction that is committed before write returns nil. f may run several times if the database or
// another write of its batch requires it, so it must keep no state between runs and must return its first error. It
// must not call write itself: on SQLite the two would wait for each other. Inserting a row that references a project or
// an account that has just been deleted fails with projects.ErrNotFound.
func (s *Store) write(ctx context.Context, f func(tx *sql.Tx) error) error {
	return s.retry(ctx, func() error { return s.writeOnce(ctx, f) })
}

// exec is like write for a single statement, and returns the number of rows that it changed. On PostgreSQL it needs one
// round trip instead of three, but if the connection is lost, the statement may run again after it took effect. The
// error starts with purpose.
func (s *Store) exec(ctx context.Context, purpose, statement string, args ...any) (n int64, err error) {
	if s.batches == nil {
		var result sql.Result
		err = s.retry(ctx, func() (err error) {
			result, err = s.writes.ExecContext(ctx, statement, args...)
			return err
		})
		return rowsChanged(result, err, purpose)
	}
	err = s.write(ctx, func(tx *sql.Tx) error {
		n, err = execCount(ctx, tx, purpose, statement, args...)
		return err
	})
	return n, err
}

func (s *Store) writeOnce(ctx context.Context, f func(tx *sql.Tx) error) error {
	if s.batches != nil {
		return s.batches.do(ctx, f)
	}
	tx, err := s.writes.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := f(tx); err != nil {
		return errors.Join(err, ignoreDone(tx.Rollback()))
	}
	return s.commit(ctx, tx)
}

// pointRead returns the context for reading one row. On SQLite, such a read ends before it could be cancelled, and
// watching a context costs as much as the read itself.
func (s *Store) pointRead(ctx context.Context) context.Context {
	if s.batches == nil || ctx.Err() != nil {
		return ctx
	}
	return context.WithoutCancel(ctx)
}

// truncateJournal also removes deleted data from SQLite's journal, where an idle server would keep it indefinitely. A
// long read prevents that: while truncateJournal waits for such a read, it blocks other writes, for at most a tenth of
// a second.
func (s *Store) truncateJournal(ctx context.Context) error {
	if s.batches == nil {
		return nil
	}
	conn, err := s.writes.Conn(ctx)
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
	return errors.Join(err, restoreErr)
}

func ignoreDone(err error) error {
	if errors.Is(err, sql.ErrTxDone) {
		return nil
	}
	return err
}

// isDuplicate reports whether a unique constraint rejected a row.
func isDuplicate(err error) bool {
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
