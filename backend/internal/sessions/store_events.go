package sessions

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/service-dev/service/backend/internal/db"
	"github.com/service-dev/service/glasses"
)

// AppendEvents inserts the rows in one transaction. Rows of a session keep their order and get the next numbers. A row
// that already exists keeps its number and is marked as a duplicate. Rows of an unknown session fail with
// ErrNotFound; rows of a closed session get numbers but are not stored. If a quota is exceeded, the oldest
// rows are deleted.
func (s *Store) AppendEvents(ctx context.Context, rows []Row, q Quota) error {
	// Handle one session at a time, in a fixed order, so that two writers cannot deadlock.
	sessions := db.Groups(rows, compareSessions)
	var over []string // accounts over their quota
	err := s.Write(ctx, func(tx *sql.Tx) error {
		grown := map[string]int64{}
		for group := range sessions {
			account, bytes, err := appendTo(ctx, tx, rows[group[0]].SessionID, rows, group, q)
			if err != nil {
				return err
			}
			grown[account] += bytes
		}
		over = over[:0]
		for _, account := range slices.Sorted(maps.Keys(grown)) {
			if grown[account] == 0 {
				continue
			}
			total, err := addAccountBytes(ctx, tx, account, grown[account])
			if err != nil {
				return err
			}
			if total > q.AccountBytes {
				over = append(over, account)
			}
		}
		return nil
	})
	if err != nil {
		return db.MarkUnavailable(err)
	}
	for _, account := range over {
		// If this fails, the next append and the next sweep try again.
		_ = s.trimAccount(ctx, account, q.AccountBytes-q.AccountBytes/(trimSlack*10))
	}
	return nil
}

func compareSessions(a, b *Row) int { return strings.Compare(a.SessionID, b.SessionID) }

// appendTo inserts the rows of one session and returns the number of bytes by which the log grew.
func appendTo(
	ctx context.Context, tx *sql.Tx, id string, rows []Row, which []int, q Quota,
) (account string, grown int64, err error) {
	l, err := lockLog(ctx, tx, id)
	if err != nil {
		return "", 0, err
	}
	if l.closed {
		return l.account, 0, numberOnly(ctx, tx, id, l, rows, which)
	}
	before := l
	var state *State
	for _, i := range which {
		if err := appendRow(ctx, tx, id, &l, &rows[i]); err != nil {
			return "", 0, err
		}
		state = cmp.Or(rows[i].State, state)
	}
	if err := saveState(ctx, tx, id, state); err != nil {
		return "", 0, err
	}
	if err := noteApp(ctx, tx, id, rows, which); err != nil {
		return "", 0, err
	}
	if l.last == before.last {
		return l.account, 0, nil
	}
	overRows, overBytes := l.rows()-q.SessionRows, l.bytes-q.SessionBytes
	if overRows <= 0 && overBytes <= 0 {
		return l.account, l.bytes - before.bytes, db.Exec(ctx, tx, "save state of event log", `UPDATE sessions
			SET last_seq = $1, log_bytes = $2, oldest_at = COALESCE(oldest_at, $3) WHERE id = $4`,
			l.last, l.bytes, rows[which[0]].Event.At, id)
	}
	if overRows > 0 {
		overRows += q.SessionRows / trimSlack
	}
	if overBytes > 0 {
		overBytes += q.SessionBytes / trimSlack
	}
	if err := trimLog(ctx, tx, id, &l, overRows, overBytes); err != nil {
		return "", 0, err
	}
	return l.account, l.bytes - before.bytes, saveTrimmed(ctx, tx, id, l)
}

// noteApp stores the time when the first app attached to a session, if one of the rows records it.
func noteApp(ctx context.Context, tx *sql.Tx, id string, rows []Row, which []int) error {
	for _, i := range which {
		if e := rows[i].Event; e.Type == glasses.RowAppAttached {
			return db.Exec(ctx, tx, "note the app of session",
				`UPDATE sessions SET app_at = $1 WHERE id = $2 AND app_at IS NULL`, e.At, id)
		}
	}
	return nil
}

// appendRow inserts a row with the next number, unless it already exists.
func appendRow(ctx context.Context, tx *sql.Tx, id string, l *logState, r *Row) error {
	e := &r.Event
	r.Duplicate = false
	inserted, err := db.Changed(ctx, tx, "insert event", `INSERT INTO events
			(session_id, seq, sender, frame_id, kind, type, chip, ok, at, body)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT (session_id, frame_id, kind, sender) DO NOTHING`,
		id, l.last+1, e.Sender, e.ID, e.Kind, e.Type, e.Chip, db.BoolInt(r.OK), e.At, string(e.Payload))
	if err != nil {
		return err
	}
	if inserted {
		l.last++
		l.bytes += r.Bytes()
		e.Seq = l.last
		return nil
	}
	r.Duplicate = true
	e.Seq, err = db.QueryValue[int64](ctx, tx, `SELECT seq FROM events
		WHERE session_id = $1 AND frame_id = $2 AND kind = $3 AND sender = $4`, id, e.ID, e.Kind, e.Sender)
	if err != nil {
		return fmt.Errorf("read event number: %w", err)
	}
	return nil
}

// numberOnly numbers rows of a closed session without storing them. The rows were in flight when the log was deleted.
func numberOnly(ctx context.Context, tx *sql.Tx, id string, l logState, rows []Row, which []int) error {
	for _, i := range which {
		l.last++
		rows[i].Event.Seq, rows[i].Duplicate = l.last, false
	}
	return db.Exec(ctx, tx, "number events",
		`UPDATE sessions SET last_seq = $1, first_seq = $2 WHERE id = $3`, l.last, l.last+1, id)
}

const eventColumns = `seq, at, kind, chip, type, frame_id, sender, body`

func scanEvent(row db.Row) (e glasses.Event, err error) {
	err = row.Scan(&e.Seq, &e.At, &e.Kind, &e.Chip, &e.Type, &e.ID, &e.Sender, (*[]byte)(&e.Payload))
	return e, err
}

// visible selects the rows of a log that readers can see.
const visible = `seq >= (SELECT first_seq FROM sessions WHERE id = $1)`

// SessionEvents returns up to limit rows with seq above since, in order. Row numbers have no gaps: if the first row is
// not since+1, the rows between were deleted.
func (s *Store) SessionEvents(ctx context.Context, sessionID string, since int64, limit int) ([]glasses.Event, error) {
	return db.All(ctx, s, scanEvent, `SELECT `+eventColumns+` FROM events
		WHERE session_id = $1 AND seq > $2 AND `+visible+` ORDER BY seq LIMIT $3`, sessionID, since, limit)
}

// saveState stores the state of a session whose log is locked. A nil state means no change.
func saveState(ctx context.Context, tx *sql.Tx, id string, state *State) error {
	if state == nil {
		return nil
	}
	body, err := json.Marshal(state)
	if err != nil {
		return fmt.Errorf("encode state of session: %w", err)
	}
	return db.Exec(ctx, tx, "save state of session", `INSERT INTO session_states (session_id, body) VALUES ($1, $2)
		ON CONFLICT (session_id) DO UPDATE SET body = excluded.body`, id, string(body))
}

// Memory returns a session's last display command that succeeded, even if its row was deleted because of a quota. It
// also returns the state from the latest row that had one.
func (s *Store) Memory(ctx context.Context, sessionID string) (Memory, error) {
	display, err := s.lastDisplay(ctx, sessionID)
	if err != nil {
		return Memory{}, fmt.Errorf("read last display: %w", err)
	}
	m := Memory{Display: display}
	body, err := db.QueryValue[[]byte](ctx, s, `SELECT body FROM session_states WHERE session_id = $1`, sessionID)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return m, nil
	case err != nil:
		return m, fmt.Errorf("read state of session: %w", err)
	}
	if err := json.Unmarshal(body, &m.State); err != nil {
		return m, fmt.Errorf("decode state of session: %w", err)
	}
	return m, nil
}

func (s *Store) lastDisplay(ctx context.Context, sessionID string) (e glasses.Event, err error) {
	for _, query := range []string{
		`SELECT ` + eventColumns + ` FROM events r WHERE session_id = $1 AND ` + visible + ` AND ` + okDisplay + `
			ORDER BY seq DESC LIMIT 1`,
		`SELECT ` + eventColumns + ` FROM session_displays WHERE session_id = $1`,
	} {
		e, err = scanEvent(s.QueryRowContext(ctx, query, sessionID))
		if !errors.Is(err, sql.ErrNoRows) {
			return e, err
		}
	}
	return glasses.Event{}, nil
}
