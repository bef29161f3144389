package db

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

const (
	// maxConflictTries is the maximum number of times that a conflicting transaction runs.
	maxConflictTries = 5
	// maxOutage is the time that a write waits while PostgreSQL restarts or fails over to another server, or while
	// another process holds a lock.
	maxOutage   = 5 * time.Second
	outagePause = 250 * time.Millisecond
)

var (
	// ErrNoProject is returned for a row that references a project or an account that does not exist.
	ErrNoProject = errors.New("no such project")
	// ErrUnavailable is returned for a write that may succeed later, because the state of the database prevents it.
	ErrUnavailable = errors.New("the store is unavailable")
)

// Retry repeats a write, or a read that a write needs, while it conflicts with others or the database is briefly
// unreachable.
func (d *DB) Retry(ctx context.Context, once func() error) error {
	start := time.Now()
	for try := 1; ; try++ {
		err := once()
		if isOrphan(err) {
			return fmt.Errorf("%w: %w", ErrNoProject, err)
		}
		var pause time.Duration
		switch {
		case err == nil:
			return nil
		case isConflict(err) && try < maxConflictTries:
			pause = time.Duration(try) * 5 * time.Millisecond
		case d.Postgres() && isOutage(err) && time.Since(start) < maxOutage:
			pause = outagePause
			d.dropIdle()
		case isLockTimeout(err) && time.Since(start) < maxOutage:
			pause = time.Duration(try) * 5 * time.Millisecond
		case isLockTimeout(err):
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		default:
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

// dropIdle closes idle connections, because their server may have become a standby. Only one goroutine may call it at
// a time. If SetMaxIdleConns is called while SetMaxIdleConns(0) closes connections, the pool reuses the list of
// connections to close, and closes connections in use instead.
func (d *DB) dropIdle() {
	if !d.dropping.TryLock() {
		return
	}
	defer d.dropping.Unlock()
	d.writes.SetMaxIdleConns(0)
	d.writes.SetMaxIdleConns(maxConns)
}

// isConflict reports whether the transaction must run again after a serialization failure or a deadlock.
func isConflict(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "40001" || pg.Code == "40P01")
}

// isLockTimeout reports whether the transaction waited too long for a lock of another transaction.
func isLockTimeout(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "55P03"
}

// isOutage reports whether PostgreSQL was unreachable, closed the connection or temporarily refuses writes. In all
// these cases, PostgreSQL rolls back an uncommitted transaction.
func isOutage(err error) bool {
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		switch refused.Code {
		case "57P01", "57P02", "57P03", // the server is shutting down, has crashed or is starting up
			"25006", // the server has become the standby
			"25P03": // the transaction was idle for too long
			return true
		}
		return strings.HasPrefix(refused.Code, "08") // the connection failed
	}
	var unreached *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &unreached) || pgconn.SafeToRetry(err) || errors.As(err, &network) && !network.Timeout() ||
		isAny(err, driver.ErrBadConn, sql.ErrConnDone, io.ErrUnexpectedEOF, io.EOF)
}

func isAny(err error, targets ...error) bool {
	return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
}

// isUnavailable reports whether a write failed because of the state of the database rather than its own content. Such a
// write may succeed later.
func isUnavailable(err error) bool {
	var pg *pgconn.PgError
	var lite *sqlite.Error
	switch {
	case err == nil:
		return false
	case isOutage(err), isLockTimeout(err), isAny(err, context.DeadlineExceeded, errUnknownOutcome, errRolledBack):
		return true
	case errors.As(err, &pg): // classes: insufficient resources, system error, operator intervention
		return strings.HasPrefix(pg.Code, "53") || strings.HasPrefix(pg.Code, "58") || strings.HasPrefix(pg.Code, "57")
	case errors.As(err, &lite):
		switch lite.Code() & 0xff {
		case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR,
			sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PROTOCOL:
			return true
		}
	}
	return false
}

// MarkUnavailable wraps errors for which isUnavailable is true with ErrUnavailable, so that callers try again later.
func MarkUnavailable(err error) error {
	if isUnavailable(err) {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return err
}

// errUnknownOutcome is returned for a transaction that may or may not have committed.
var errUnknownOutcome = errors.New(
	"the connection was lost during a commit, and the database did not return in time to report the outcome")

const currentTransaction = `SELECT pg_current_xact_id_if_assigned()::text`

// commit commits a transaction. If the connection to PostgreSQL is lost during the commit, it determines whether the
// commit succeeded. Otherwise a repeated transaction would find its own changes.
func (d *DB) commit(ctx context.Context, tx *sql.Tx) error {
	if !d.Postgres() {
		return tx.Commit()
	}
	if !d.tracksCommits {
		return preventRetry(tx.Commit())
	}
	id, err := QueryValue[sql.NullString](ctx, tx, currentTransaction) // NULL if the transaction wrote nothing
	if err != nil {
		return errors.Join(err, ignoreDone(tx.Rollback()))
	}
	return d.settleCommit(ctx, id, tx.Commit())
}

// settleCommit returns the error from committing transaction id, or nil if the transaction was committed despite the
// error. id is NULL if the transaction wrote nothing.
func (d *DB) settleCommit(ctx context.Context, id sql.NullString, err error) error {
	if err == nil || !id.Valid || isConflict(err) || !isOutage(err) && ctx.Err() == nil {
		return err
	}
	return d.commitOutcome(context.WithoutCancel(ctx), id.String, err)
}

// commitOutcome returns nil if a transaction was committed, and lost if it was not.
func (d *DB) commitOutcome(ctx context.Context, id string, lost error) error {
	ctx, cancel := context.WithTimeout(ctx, 2*maxOutage)
	defer cancel()
	for {
		status, err := QueryValue[sql.NullString](ctx, d.reads, `SELECT pg_xact_status($1::text::xid8)`, id)
		switch {
		case err == nil && status.String == "committed":
			return nil
		case err == nil && status.String == "aborted":
			return lost
		case err != nil && !isOutage(err) && ctx.Err() == nil: // the server no longer knows the transaction
			return errors.Join(errUnknownOutcome, opaqueError{lost}, err)
		}
		select { // unreachable, or the transaction is still in progress
		case <-ctx.Done():
			return errors.Join(errUnknownOutcome, opaqueError{lost})
		case <-time.After(outagePause):
		}
	}
}

// preventRetry prevents a commit with an unknown outcome from being repeated.
func preventRetry(err error) error {
	if err != nil && !isConflict(err) && isOutage(err) {
		return errors.Join(errUnknownOutcome, opaqueError{err})
	}
	return err
}

// opaqueError has the text of an error but does not unwrap to it, because a write with an unknown outcome must not be
// retried.
type opaqueError struct{ err error }

func (e opaqueError) Error() string { return e.err.Error() }
