package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/service-dev/service/backend/internal/projects"
	"github.com/service-dev/service/backend/internal/sessions"
)

const (
	// conflictTries is how often a transaction runs that others get in the way of.
	conflictTries = 5
	// awayWait is how long a write waits for a PostgreSQL that restarts or changes over to another server.
	awayWait  = 5 * time.Second
	awayPause = 250 * time.Millisecond
)

// retried runs a write again while the database asks for that, or is away for a moment.
func (s *Store) retried(ctx context.Context, once func() error) error {
	begun := time.Now()
	for try := 1; ; try++ {
		err := once()
		if orphan(err) {
			return fmt.Errorf("%w: %w", projects.ErrNotFound, err)
		}
		var pause time.Duration
		switch {
		case err == nil:
			return nil
		case conflicts(err) && try < conflictTries:
			pause = time.Duration(try) * 5 * time.Millisecond
		case s.group == nil && away(err) && time.Since(begun) < awayWait:
			pause = awayPause
			s.dropIdle()
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

// dropIdle closes the connections that nobody uses: they may lead to a server that became the standby.
func (s *Store) dropIdle() {
	s.writes.SetMaxIdleConns(0)
	s.writes.SetMaxIdleConns(maxConns)
}

// conflicts tells whether the database asks for the transaction to be run once more (serialization failure, deadlock).
func conflicts(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "40001" || pg.Code == "40P01")
}

// away tells whether PostgreSQL could not be reached, went away, or takes no writes for now. What was not committed is
// undone then.
func away(err error) bool {
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		switch refused.Code {
		case "57P01", "57P02", "57P03", // it shuts down, has crashed, starts
			"25006": // it is the standby by now
			return true
		}
		return strings.HasPrefix(refused.Code, "08") // the connection failed
	}
	var unreached *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &unreached) || pgconn.SafeToRetry(err) || errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.As(err, &network) && !network.Timeout()
}

// unavailable tells whether a write failed over the database and not over what was written: it may do better later.
func unavailable(err error) bool {
	var pg *pgconn.PgError
	var lite *sqlite.Error
	switch {
	case err == nil:
		return false
	case away(err), errors.Is(err, context.DeadlineExceeded), errors.Is(err, errOutcome), errors.Is(err, errUndone):
		return true
	case errors.As(err, &pg): // insufficient resources, system error, cancelled or no longer connected by the operator
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

// orUnavailable marks an error that may be gone later for the relay, which waits for that.
func orUnavailable(err error) error {
	if unavailable(err) {
		return fmt.Errorf("%w: %w", sessions.ErrUnavailable, err)
	}
	return err
}

// errOutcome: whether a transaction was committed could not be found out.
var errOutcome = errors.New("the database went away during a commit, and did not come back in time to tell whether it was made")

const currentTransaction = `SELECT pg_current_xact_id_if_assigned()::text`

// commit commits a transaction of PostgreSQL. When the connection is lost meanwhile, the answer is lost and not the
// commit: it looks whether it was made, since a transaction that runs again would find its own work done.
func (s *Store) commit(ctx context.Context, tx *sql.Tx) error {
	if !s.tracks {
		return hide(tx.Commit())
	}
	var id sql.NullString // none when nothing was written
	if err := tx.QueryRowContext(ctx, currentTransaction).Scan(&id); err != nil {
		return errors.Join(err, ignoreDone(tx.Rollback()))
	}
	err := tx.Commit()
	if err == nil || !id.Valid || conflicts(err) || !away(err) && ctx.Err() == nil {
		return err
	}
	return s.outcome(context.WithoutCancel(ctx), id.String, err)
}

// outcome returns nil when a transaction was committed, and lost when it was not.
func (s *Store) outcome(ctx context.Context, id string, lost error) error {
	ctx, cancel := context.WithTimeout(ctx, 2*awayWait)
	defer cancel()
	for {
		var status sql.NullString
		err := s.reads.QueryRowContext(ctx, `SELECT pg_xact_status($1::text::xid8)`, id).Scan(&status)
		switch {
		case err == nil && status.String == "committed":
			return nil
		case err == nil && status.String == "aborted":
			return lost
		case err != nil && !away(err) && ctx.Err() == nil: // it cannot tell
			return errors.Join(errOutcome, hidden{lost}, err)
		}
		select { // it is away, or the transaction goes on for a moment
		case <-ctx.Done():
			return errors.Join(errOutcome, hidden{lost})
		case <-time.After(awayPause):
		}
	}
}

// hide keeps a commit whose outcome nobody can tell from running again.
func hide(err error) error {
	if err != nil && !conflicts(err) && away(err) {
		return errors.Join(errOutcome, hidden{err})
	}
	return err
}

// hidden keeps the text of an error and not what it is: a write of unknown outcome must not run again.
type hidden struct{ err error }

func (h hidden) Error() string { return h.err.Error() }
