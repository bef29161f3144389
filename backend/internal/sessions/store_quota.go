package sessions

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/service-dev/service/backend/internal/db"
	"github.com/service-dev/service/glasses"
)

const (
	// trimRows is the maximum number of rows that one statement examines and deletes.
	trimRows = 1000
	// trimSlack determines the fraction of a quota (1/trimSlack) that a trim frees beyond the needed space, so that not
	// every append has to trim.
	trimSlack = 100
	// purgeRows is the number of rows of a finished log that one transaction deletes, which limits how long appends
	// wait.
	purgeRows = 5000
)

// rowBytes computes Row.Bytes for a stored row.
var rowBytes = `OCTET_LENGTH(body) + OCTET_LENGTH(type) + OCTET_LENGTH(frame_id) + ` +
	strconv.Itoa(RowOverhead)

// logState is the state of an event log, as stored in its session's row. All numbers from first to last exist.
type logState struct {
	account     string
	first, last int64
	bytes       int64
	closed      bool
}

func (l *logState) rows() int64 { return l.last - l.first + 1 }

// lockLog returns the state of a session's log and locks the session's row until the transaction ends. The lock keeps
// row numbers unique and without gaps, even with several writers.
func lockLog(ctx context.Context, tx *sql.Tx, id string) (l logState, err error) {
	l, err = db.One(ctx, tx, ErrNotFound, func(row db.Row) (l logState, err error) {
		err = row.Scan(&l.account, &l.first, &l.last, &l.bytes, &l.closed)
		return l, err
	}, `UPDATE sessions SET last_seq = last_seq WHERE id = $1
		RETURNING account_id, first_seq, last_seq, log_bytes, closed_at IS NOT NULL`, id)
	if err != nil {
		return logState{}, fmt.Errorf("lock event log: %w", err)
	}
	return l, nil
}

// addAccountBytes changes the total size of an account's logs and returns it. A caller that also locks logs must lock
// them first.
func addAccountBytes(ctx context.Context, tx *sql.Tx, accountID string, delta int64) (total int64, err error) {
	total, err = db.QueryValue[int64](ctx, tx, `INSERT INTO account_logs (account_id, bytes) VALUES ($1, $2)
		ON CONFLICT (account_id) DO UPDATE SET bytes = account_logs.bytes + excluded.bytes RETURNING bytes`, accountID, delta)
	if err != nil {
		return 0, fmt.Errorf("update size of event logs: %w", err)
	}
	return total, nil
}

// trimLog deletes at least rows rows and bytes bytes from a locked log, oldest first. The caller must save l.
func trimLog(ctx context.Context, tx *sql.Tx, id string, l *logState, rows, bytes int64) error {
	for (rows > 0 || bytes > 0) && l.first <= l.last {
		cut, size, err := oldestRows(ctx, tx, id, l.first, rows, bytes)
		if err != nil {
			return err
		}
		if err := keepDisplay(ctx, tx, id, l.first, cut); err != nil {
			return err
		}
		err = db.Exec(ctx, tx, "delete oldest events", `DELETE FROM events WHERE session_id = $1 AND seq <= $2`, id, cut)
		if err != nil {
			return err
		}
		rows, bytes = rows-(cut-l.first+1), bytes-size
		l.first, l.bytes = cut+1, l.bytes-size
	}
	return nil
}

// oldestRows selects the oldest rows until they reach this count and total size, but at most trimRows. It returns the
// number of the last row and the total size of the rows.
func oldestRows(
	ctx context.Context, tx *sql.Tx, id string, first, rows, bytes int64,
) (cut, size int64, err error) {
	err = db.Each(ctx, tx, func(row db.Row) error {
		if rows <= 0 && bytes <= 0 {
			return db.ErrEnough
		}
		var rowSize int64
		err := row.Scan(&cut, &rowSize)
		rows, bytes, size = rows-1, bytes-rowSize, size+rowSize
		return err
	}, `SELECT seq, `+rowBytes+` FROM events WHERE session_id = $1 AND seq >= $2 ORDER BY seq LIMIT $3`, id, first,
		trimRows)
	if err != nil {
		return 0, 0, fmt.Errorf("read oldest events: %w", err)
	}
	if cut == 0 {
		return 0, 0, fmt.Errorf("session %s has no event from %d on", id, first)
	}
	return cut, size, nil
}

const okDisplay = `kind = 'request' AND type IN ('` + glasses.TypeDisplayShow + `', '` + glasses.TypeDisplayClear + `')
	AND EXISTS (SELECT 1 FROM events x
		WHERE x.session_id = r.session_id AND x.frame_id = r.frame_id AND x.kind = 'result' AND x.ok = 1)`

// keepDisplay saves the last display command among the rows from first to cut, which are about to be deleted.
func keepDisplay(ctx context.Context, tx *sql.Tx, id string, first, cut int64) error {
	return db.Exec(ctx, tx, "keep last display", `INSERT INTO session_displays (session_id, `+eventColumns+`)
		SELECT session_id, `+eventColumns+` FROM events r
		WHERE session_id = $1 AND seq >= $2 AND seq <= $3 AND `+okDisplay+` ORDER BY seq DESC LIMIT 1
		ON CONFLICT (session_id) DO UPDATE SET seq = excluded.seq, at = excluded.at, kind = excluded.kind,
		chip = excluded.chip, type = excluded.type, frame_id = excluded.frame_id, sender = excluded.sender,
		body = excluded.body`, id, first, cut)
}

// saveTrimmed stores the state of a log after some of its rows were deleted.
func saveTrimmed(ctx context.Context, tx *sql.Tx, id string, l logState) error {
	return db.Exec(ctx, tx, "save state of event log", `UPDATE sessions SET first_seq = $2, last_seq = $3, log_bytes = $4,
		oldest_at = (SELECT at FROM events WHERE session_id = $1 ORDER BY seq LIMIT 1) WHERE id = $1`,
		id, l.first, l.last, l.bytes)
}

// trimAccount deletes an account's oldest rows until its logs are at most limit bytes long. Each transaction deletes up
// to trimRows rows of the session with the oldest row.
func (s *Store) trimAccount(ctx context.Context, accountID string, limit int64) error {
	for more := true; more; {
		err := s.Write(ctx, func(tx *sql.Tx) (err error) {
			more, err = trimOldestSession(ctx, tx, accountID, limit)
			return err
		})
		if err != nil {
			return fmt.Errorf("trim event logs of account: %w", err)
		}
	}
	return nil
}

func trimOldestSession(ctx context.Context, tx *sql.Tx, accountID string, limit int64) (more bool, err error) {
	id, err := db.QueryValue[string](ctx, tx, `SELECT id FROM sessions
		WHERE account_id = $1 AND oldest_at IS NOT NULL AND log_bytes > 0 ORDER BY oldest_at, id LIMIT 1`, accountID)
	if err != nil {
		return false, db.ReplaceNoRows(err, nil)
	}
	l, err := lockLog(ctx, tx, id)
	if errors.Is(err, ErrNotFound) { // the session was deleted after the query
		return true, nil
	}
	if err != nil {
		return false, err
	}
	total, err := addAccountBytes(ctx, tx, accountID, 0) // read after the lock, because another process may have trimmed
	over := total - limit
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

// emptyLog hides the rows of a locked log from readers; purgeLog deletes them later.
func emptyLog(ctx context.Context, tx *sql.Tx, id string, l logState) error {
	err := db.ExecAll(ctx, tx, "empty event log",
		db.Stmt(`UPDATE sessions SET first_seq = last_seq + 1, log_bytes = 0 WHERE id = $1`, id),
		db.Stmt(`DELETE FROM session_displays WHERE session_id = $1`, id),
		db.Stmt(`DELETE FROM session_states WHERE session_id = $1`, id))
	if err != nil || l.bytes == 0 {
		return err
	}
	_, err = addAccountBytes(ctx, tx, l.account, -l.bytes)
	return err
}

// purgeLog deletes up to purgeRows rows that readers no longer see, and reports whether more may remain.
func (s *Store) purgeLog(ctx context.Context, id string) (more bool, err error) {
	err = s.Write(ctx, func(tx *sql.Tx) error {
		l, err := lockLog(ctx, tx, id)
		if err != nil {
			return err
		}
		n, err := db.ExecCount(ctx, tx, "purge event log", `DELETE FROM events WHERE session_id = $1 AND seq IN
			(SELECT seq FROM events WHERE session_id = $1 AND seq < $2 ORDER BY seq LIMIT $3)`, id, l.first, purgeRows)
		if err != nil {
			return err
		}
		more = n == purgeRows
		return saveTrimmed(ctx, tx, id, l)
	})
	return more, err
}

// SweepLogs deletes the rows and scripts of sessions that were closed or inactive since idle, and the rows of accounts
// that are over the quota and have used a session since recent. Other accounts are usually trimmed already; otherwise
// they wait for their next use.
func (s *Store) SweepLogs(ctx context.Context, idle, recent time.Time, q Quota) error {
	if err := s.sweepGateways(ctx, idle); err != nil {
		return err
	}
	finished, err := db.All(ctx, s, db.Value[string], `SELECT id FROM sessions
			WHERE oldest_at IS NOT NULL AND last_active_at < $1 AND closed_at IS NULL
		UNION ALL SELECT id FROM sessions WHERE oldest_at IS NOT NULL AND closed_at > 0`, db.ToMS(idle))
	if err != nil {
		return fmt.Errorf("list finished event logs: %w", err)
	}
	for _, id := range finished {
		if err := s.sweepLog(ctx, id, idle); err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
	}
	full, err := db.All(ctx, s, db.Value[string], `SELECT account_id FROM account_logs
		WHERE bytes > $1
			AND account_id IN (SELECT account_id FROM sessions WHERE oldest_at IS NOT NULL AND last_active_at >= $2)`,
		q.AccountBytes, db.ToMS(recent))
	if err != nil {
		return fmt.Errorf("list accounts over their quota: %w", err)
	}
	for _, id := range full {
		if err := s.trimAccount(ctx, id, q.AccountBytes); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) sweepLog(ctx context.Context, id string, idle time.Time) error {
	finished := false
	err := s.Write(ctx, func(tx *sql.Tx) error {
		l, err := lockLog(ctx, tx, id)
		if err != nil {
			return err
		}
		active, err := db.QueryValue[int64](ctx, tx, `SELECT last_active_at FROM sessions WHERE id = $1`, id)
		if err != nil {
			return err
		}
		if finished = l.closed || active < db.ToMS(idle); !finished {
			return nil // the session was used in the meantime
		}
		return emptyLog(ctx, tx, id, l)
	})
	for more := finished; err == nil && more; {
		more, err = s.purgeLog(ctx, id)
	}
	return err
}
