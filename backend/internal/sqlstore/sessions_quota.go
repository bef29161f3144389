package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/proto/glasses"
)

const (
	// trimRows is how many rows are looked at and deleted by one statement.
	trimRows = 1000
	// trimSlack is the part of a quota that a trim frees beyond what is needed, so that not every append trims.
	trimSlack = 100
	// purgeRows is how many rows of a log that is over one transaction deletes: appends wait no longer than this takes.
	purgeRows = 5000
)

// rowBytes is sessions.Row.Bytes of a stored row.
var rowBytes = `OCTET_LENGTH(body) + OCTET_LENGTH(type) + OCTET_LENGTH(frame_id) + ` + strconv.Itoa(sessions.RowOverhead)

// logState is what the row of a session says of its event log. Numbers are dense: first to last are all there.
type logState struct {
	account     string
	first, last int64
	bytes       int64
	closed      bool
}

func (l *logState) rows() int64 { return l.last - l.first + 1 }

// lockLog reads the state of a session's log and holds the session's row until the transaction ends, so that numbers have
// no gap and no twin even with several writers.
func lockLog(ctx context.Context, tx *sql.Tx, id string) (l logState, err error) {
	var closed sql.NullInt64
	err = tx.QueryRowContext(ctx, `UPDATE sessions SET last_seq = last_seq WHERE id = $1
		RETURNING account_id, first_seq, last_seq, log_bytes, closed_at`, id).Scan(&l.account, &l.first, &l.last, &l.bytes, &closed)
	if err != nil {
		return logState{}, fmt.Errorf("locking an event log: %w", missing(err, sessions.ErrNotFound))
	}
	l.closed = closed.Valid
	return l, nil
}

// addAccountBytes changes the size of all logs of an account and returns it. Whoever also locks logs does that before.
func addAccountBytes(ctx context.Context, tx *sql.Tx, accountID string, delta int64) (total int64, err error) {
	err = tx.QueryRowContext(ctx, `INSERT INTO account_logs (account_id, bytes) VALUES ($1, $2)
		ON CONFLICT (account_id) DO UPDATE SET bytes = account_logs.bytes + excluded.bytes RETURNING bytes`, accountID, delta).Scan(&total)
	if err != nil {
		return 0, fmt.Errorf("counting an account's event logs: %w", err)
	}
	return total, nil
}

// trimLog deletes the oldest rows of a locked log, at least so many rows and bytes. The caller saves l.
func trimLog(ctx context.Context, tx *sql.Tx, id string, l *logState, rows, bytes int64) error {
	for (rows > 0 || bytes > 0) && l.first <= l.last {
		cut, size, err := oldestRows(ctx, tx, id, l.first, rows, bytes)
		if err != nil {
			return err
		}
		if err := keepDisplay(ctx, tx, id, l.first, cut); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM events WHERE session_id = $1 AND seq <= $2`, id, cut); err != nil {
			return fmt.Errorf("deleting the oldest events: %w", err)
		}
		rows, bytes = rows-(cut-l.first+1), bytes-size
		l.first, l.bytes = cut+1, l.bytes-size
	}
	return nil
}

// oldestRows returns the last of the oldest rows that are so many and so big, but of trimRows at most, and their size.
func oldestRows(ctx context.Context, tx *sql.Tx, id string, first, rows, bytes int64) (cut, size int64, err error) {
	found, err := tx.QueryContext(ctx, `SELECT seq, `+rowBytes+` FROM events WHERE session_id = $1 AND seq >= $2 ORDER BY seq LIMIT $3`,
		id, first, trimRows)
	if err != nil {
		return 0, 0, fmt.Errorf("reading the oldest events: %w", err)
	}
	defer func() { err = errors.Join(err, found.Close()) }()
	for found.Next() && (rows > 0 || bytes > 0) {
		var one int64
		if err := found.Scan(&cut, &one); err != nil {
			return 0, 0, fmt.Errorf("reading the oldest events: %w", err)
		}
		rows, bytes, size = rows-1, bytes-one, size+one
	}
	if err := found.Err(); err != nil {
		return 0, 0, fmt.Errorf("reading the oldest events: %w", err)
	}
	if cut == 0 {
		return 0, 0, fmt.Errorf("session %s has no event from %d on", id, first)
	}
	return cut, size, nil
}

const okDisplay = `kind = 'request' AND type IN ('` + glasses.TypeDisplayShow + `', '` + glasses.TypeDisplayClear + `')
	AND EXISTS (SELECT 1 FROM events x WHERE x.session_id = r.session_id AND x.frame_id = r.frame_id AND x.kind = 'result' AND x.ok = 1)`

// keepDisplay keeps what the panel shows when the rows from first to cut go.
func keepDisplay(ctx context.Context, tx *sql.Tx, id string, first, cut int64) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO session_displays (session_id, `+eventColumns+`)
		SELECT session_id, `+eventColumns+` FROM events r WHERE session_id = $1 AND seq >= $2 AND seq <= $3 AND `+okDisplay+` ORDER BY seq DESC LIMIT 1
		ON CONFLICT (session_id) DO UPDATE SET seq = excluded.seq, at = excluded.at, kind = excluded.kind, chip = excluded.chip,
		type = excluded.type, frame_id = excluded.frame_id, sender = excluded.sender, body = excluded.body`, id, first, cut)
	if err != nil {
		return fmt.Errorf("keeping the last display: %w", err)
	}
	return nil
}

// saveTrimmed stores the state of a log of which rows were deleted.
func saveTrimmed(ctx context.Context, tx *sql.Tx, id string, l logState) error {
	_, err := tx.ExecContext(ctx, `UPDATE sessions SET first_seq = $2, last_seq = $3, log_bytes = $4,
		oldest_at = (SELECT at FROM events WHERE session_id = $1 ORDER BY seq LIMIT 1) WHERE id = $1`, id, l.first, l.last, l.bytes)
	if err != nil {
		return fmt.Errorf("saving the state of an event log: %w", err)
	}
	return nil
}

// trimAccount deletes the oldest rows of an account until its logs are within so many bytes: of the session with the oldest
// row, up to trimRows at a time, each in a transaction of its own.
func (s *Store) trimAccount(ctx context.Context, accountID string, most int64) error {
	for more := true; more; {
		err := s.write(ctx, func(tx *sql.Tx) (err error) {
			more, err = trimOldestSession(ctx, tx, accountID, most)
			return err
		})
		if err != nil {
			return fmt.Errorf("trimming an account's event logs: %w", err)
		}
	}
	return nil
}

func trimOldestSession(ctx context.Context, tx *sql.Tx, accountID string, most int64) (more bool, err error) {
	var id string
	err = tx.QueryRowContext(ctx, `SELECT id FROM sessions WHERE account_id = $1 AND oldest_at IS NOT NULL AND log_bytes > 0
		ORDER BY oldest_at, id LIMIT 1`, accountID).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	l, err := lockLog(ctx, tx, id)
	if err != nil {
		return false, err
	}
	total, err := addAccountBytes(ctx, tx, accountID, 0) // read after the lock: another process may have trimmed
	over := total - most
	if err != nil || over <= 0 || l.bytes == 0 {
		return over > 0, err
	}
	cut, size, err := oldestRows(ctx, tx, id, l.first, 0, over)
	if err != nil {
		return false, err
	}
	before := l.bytes
	if err := trimLog(ctx, tx, id, &l, cut-l.first+1, size); err != nil {
		return false, err
	}
	if err := saveTrimmed(ctx, tx, id, l); err != nil {
		return false, err
	}
	_, err = addAccountBytes(ctx, tx, accountID, l.bytes-before)
	return over > size, err
}

// emptyLog makes a log empty for its readers; purgeLog deletes the rows. The caller has locked it.
func emptyLog(ctx context.Context, tx *sql.Tx, id string, l logState) error {
	if _, err := tx.ExecContext(ctx, `UPDATE sessions SET first_seq = last_seq + 1, log_bytes = 0 WHERE id = $1`, id); err != nil {
		return fmt.Errorf("emptying an event log: %w", err)
	}
	if _, err := tx.ExecContext(ctx, `DELETE FROM session_displays WHERE session_id = $1`, id); err != nil {
		return fmt.Errorf("deleting the kept display: %w", err)
	}
	if l.bytes == 0 {
		return nil
	}
	_, err := addAccountBytes(ctx, tx, l.account, -l.bytes)
	return err
}

// purgeLog deletes up to purgeRows rows that readers no longer see; more tells whether there are others.
func (s *Store) purgeLog(ctx context.Context, id string) (more bool, err error) {
	err = s.write(ctx, func(tx *sql.Tx) error {
		l, err := lockLog(ctx, tx, id)
		if err != nil {
			return err
		}
		result, err := tx.ExecContext(ctx, `DELETE FROM events WHERE session_id = $1 AND seq IN
			(SELECT seq FROM events WHERE session_id = $1 AND seq < $2 ORDER BY seq LIMIT $3)`, id, l.first, purgeRows)
		if err != nil {
			return fmt.Errorf("purging an event log: %w", err)
		}
		n, err := result.RowsAffected()
		if err != nil {
			return err
		}
		more = n == purgeRows
		return saveTrimmed(ctx, tx, id, l)
	})
	return more, err
}

// SweepLogs deletes the rows of sessions that were closed, of those that nobody was active in since idle, and what accounts
// hold beyond the quota.
func (s *Store) SweepLogs(ctx context.Context, idle time.Time, q sessions.Quota) error {
	over, err := s.texts(ctx, `SELECT id FROM sessions WHERE oldest_at IS NOT NULL AND (closed_at IS NOT NULL OR last_active_at < $1)`, toMS(idle))
	if err != nil {
		return fmt.Errorf("listing event logs that are over: %w", err)
	}
	for _, id := range over {
		if err := s.sweepLog(ctx, id, idle); err != nil && !errors.Is(err, sessions.ErrNotFound) {
			return err
		}
	}
	full, err := s.texts(ctx, `SELECT account_id FROM account_logs WHERE bytes > $1`, q.AccountBytes)
	if err != nil {
		return fmt.Errorf("listing accounts over their quota: %w", err)
	}
	for _, id := range full {
		if err := s.trimAccount(ctx, id, q.AccountBytes); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) sweepLog(ctx context.Context, id string, idle time.Time) error {
	over := false
	err := s.write(ctx, func(tx *sql.Tx) error {
		l, err := lockLog(ctx, tx, id)
		if err != nil {
			return err
		}
		var active int64
		if err := tx.QueryRowContext(ctx, `SELECT last_active_at FROM sessions WHERE id = $1`, id).Scan(&active); err != nil {
			return err
		}
		if over = l.closed || active < toMS(idle); !over {
			return nil // it was used meanwhile
		}
		return emptyLog(ctx, tx, id, l)
	})
	for more := over; err == nil && more; {
		more, err = s.purgeLog(ctx, id)
	}
	return err
}

// forgetLogs takes a project's sessions out of the size of the account's logs, before they are deleted with it.
func forgetLogs(ctx context.Context, tx *sql.Tx, accountID, project string) error {
	// Held, so that nothing is appended between the sum and the deletion.
	if _, err := tx.ExecContext(ctx, `UPDATE sessions SET last_seq = last_seq WHERE account_id = $1 AND app_id = $2`, accountID, project); err != nil {
		return fmt.Errorf("locking the project's event logs: %w", err)
	}
	_, err := tx.ExecContext(ctx, `UPDATE account_logs SET bytes = bytes
		- COALESCE((SELECT SUM(log_bytes) FROM sessions WHERE account_id = $1 AND app_id = $2), 0) WHERE account_id = $1`, accountID, project)
	if err != nil {
		return fmt.Errorf("counting an account's event logs: %w", err)
	}
	return nil
}
