package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/proto/glasses"
)

// AppendEvents commits the rows in one transaction. Within a session they keep their order and get the next numbers;
// a row that is there already keeps its number and is marked. Rows of unknown sessions are refused; those of a closed
// session are numbered and not kept. Over a quota the oldest rows go.
func (s *Store) AppendEvents(ctx context.Context, rows []sessions.Row, q sessions.Quota) error {
	// One session after another, in a fixed order, so that two writers cannot wait for each other.
	order := make([]int, len(rows))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rows[a].SessionID, rows[b].SessionID) })
	var over []string // accounts
	err := s.write(ctx, func(tx *sql.Tx) error {
		grown := map[string]int64{}
		for left := order; len(left) > 0; { // order itself stays: all of this may run again
			id := rows[left[0]].SessionID
			n := 0
			for n < len(left) && rows[left[n]].SessionID == id {
				n++
			}
			account, bytes, err := appendTo(ctx, tx, id, rows, left[:n], q)
			if err != nil {
				return err
			}
			grown[account] += bytes
			left = left[n:]
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
		return orUnavailable(err)
	}
	for _, account := range over {
		// The rows are kept, whatever becomes of this: the next append and the next sweep try again.
		_ = s.trimAccount(ctx, account, q.AccountBytes-q.AccountBytes/(trimSlack*10))
	}
	return nil
}

// appendTo numbers the rows of one session and returns by how many bytes its log has grown.
func appendTo(ctx context.Context, tx *sql.Tx, id string, rows []sessions.Row, which []int, q sessions.Quota) (account string, grown int64, err error) {
	l, err := lockLog(ctx, tx, id)
	if err != nil {
		return "", 0, err
	}
	if l.closed {
		return l.account, 0, numberOnly(ctx, tx, id, l, rows, which)
	}
	before := l
	for _, i := range which {
		if err := appendRow(ctx, tx, id, &l, &rows[i]); err != nil {
			return "", 0, err
		}
	}
	if l.last == before.last {
		return l.account, 0, nil
	}
	overRows, overBytes := l.rows()-q.SessionRows, l.bytes-q.SessionBytes
	if overRows <= 0 && overBytes <= 0 {
		_, err = tx.ExecContext(ctx, `UPDATE sessions SET last_seq = $1, log_bytes = $2, oldest_at = COALESCE(oldest_at, $3) WHERE id = $4`,
			l.last, l.bytes, rows[which[0]].Event.At, id)
		if err != nil {
			return "", 0, fmt.Errorf("numbering events: %w", err)
		}
		return l.account, l.bytes - before.bytes, nil
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

// appendRow inserts a row as the next one, unless it is there already.
func appendRow(ctx context.Context, tx *sql.Tx, id string, l *logState, r *sessions.Row) error {
	e := &r.Event
	r.Duplicate = false
	inserted, err := changed(ctx, tx, `INSERT INTO events (session_id, seq, sender, frame_id, kind, type, chip, ok, at, body)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT (session_id, frame_id, kind, sender) DO NOTHING`,
		id, l.last+1, e.Sender, e.ID, e.Kind, e.Type, e.Chip, boolInt(r.OK), e.At, string(e.Payload))
	if err != nil {
		return fmt.Errorf("inserting event: %w", err)
	}
	if inserted {
		l.last++
		l.bytes += r.Bytes()
		e.Seq = l.last
		return nil
	}
	r.Duplicate = true
	err = tx.QueryRowContext(ctx, `SELECT seq FROM events WHERE session_id = $1 AND frame_id = $2 AND kind = $3 AND sender = $4`,
		id, e.ID, e.Kind, e.Sender).Scan(&e.Seq)
	if err != nil {
		return fmt.Errorf("reading event number: %w", err)
	}
	return nil
}

// numberOnly numbers rows of a closed session. They were on their way when it was deleted, and are not kept.
func numberOnly(ctx context.Context, tx *sql.Tx, id string, l logState, rows []sessions.Row, which []int) error {
	for _, i := range which {
		l.last++
		rows[i].Event.Seq, rows[i].Duplicate = l.last, false
	}
	_, err := tx.ExecContext(ctx, `UPDATE sessions SET last_seq = $1, first_seq = $2 WHERE id = $3`, l.last, l.last+1, id)
	if err != nil {
		return fmt.Errorf("numbering events: %w", err)
	}
	return nil
}

const eventColumns = `seq, at, kind, chip, type, frame_id, sender, body`

func scanEvent(row scanner) (glasses.Event, error) {
	var e glasses.Event
	var body string
	err := row.Scan(&e.Seq, &e.At, &e.Kind, &e.Chip, &e.Type, &e.ID, &e.Sender, &body)
	e.Payload = []byte(body)
	return e, err
}

// kept is what readers see of a log.
const kept = `seq >= (SELECT first_seq FROM sessions WHERE id = $1)`

// SessionEvents returns up to limit rows with seq above since, in order. Rows are numbered without a gap: when the first
// is not the one after since, those between are gone.
func (s *Store) SessionEvents(ctx context.Context, sessionID string, since int64, limit int) ([]glasses.Event, error) {
	rows, err := s.reads.QueryContext(ctx, `SELECT `+eventColumns+` FROM events
		WHERE session_id = $1 AND seq > $2 AND `+kept+` ORDER BY seq LIMIT $3`, sessionID, since, limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var events []glasses.Event
	for rows.Next() {
		e, err := scanEvent(rows)
		if err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	return events, rows.Err()
}

// LastDisplay is the last display command of a session whose result was ok, also when its row is gone over a quota; ok is
// false when there is none.
func (s *Store) LastDisplay(ctx context.Context, sessionID string) (e glasses.Event, ok bool, err error) {
	for _, query := range []string{
		`SELECT ` + eventColumns + ` FROM events r WHERE session_id = $1 AND ` + kept + ` AND ` + okDisplay + ` ORDER BY seq DESC LIMIT 1`,
		`SELECT ` + eventColumns + ` FROM session_displays WHERE session_id = $1`,
	} {
		e, err = scanEvent(s.reads.QueryRowContext(ctx, query, sessionID))
		if !errors.Is(err, sql.ErrNoRows) {
			return e, err == nil, err
		}
	}
	return glasses.Event{}, false, nil
}
