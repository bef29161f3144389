package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/proto/glasses"
)

// AppendEvents commits the rows in one transaction. Within a session they keep their order and get the next numbers;
// a row that is there already keeps its number and is marked. Rows of unknown sessions are refused.
func (s *Store) AppendEvents(ctx context.Context, rows []sessions.Row) error {
	// One session after another, in a fixed order, so that two writers cannot wait for each other.
	order := make([]int, len(rows))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rows[a].SessionID, rows[b].SessionID) })
	return s.write(ctx, func(tx *sql.Tx) error {
		for left := order; len(left) > 0; { // order itself stays: all of this may run again
			id := rows[left[0]].SessionID
			n := 0
			for n < len(left) && rows[left[n]].SessionID == id {
				n++
			}
			if err := appendTo(ctx, tx, id, rows, left[:n]); err != nil {
				return err
			}
			left = left[n:]
		}
		return nil
	})
}

// appendTo numbers the rows of one session. The no-op update locks the session's row, so that numbers have no gap and
// no twin even with several writers.
func appendTo(ctx context.Context, tx *sql.Tx, id string, rows []sessions.Row, which []int) error {
	var last int64
	err := tx.QueryRowContext(ctx, `UPDATE sessions SET last_seq = last_seq WHERE id = $1 RETURNING last_seq`, id).Scan(&last)
	if err != nil {
		return fmt.Errorf("numbering events: %w", missing(err, sessions.ErrNotFound))
	}
	first := last
	for _, i := range which {
		e := &rows[i].Event
		rows[i].Duplicate = false
		inserted, err := changed(ctx, tx, `INSERT INTO events (session_id, seq, sender, frame_id, kind, type, chip, ok, at, body)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT (session_id, frame_id, kind, sender) DO NOTHING`,
			id, last+1, e.Sender, e.ID, e.Kind, e.Type, e.Chip, boolInt(rows[i].OK), e.At, string(e.Payload))
		if err != nil {
			return fmt.Errorf("inserting event: %w", err)
		}
		if inserted {
			last++
			e.Seq = last
			continue
		}
		rows[i].Duplicate = true
		err = tx.QueryRowContext(ctx, `SELECT seq FROM events WHERE session_id = $1 AND frame_id = $2 AND kind = $3 AND sender = $4`,
			id, e.ID, e.Kind, e.Sender).Scan(&e.Seq)
		if err != nil {
			return fmt.Errorf("reading event number: %w", err)
		}
	}
	if last == first {
		return nil
	}
	if _, err := tx.ExecContext(ctx, `UPDATE sessions SET last_seq = $1 WHERE id = $2`, last, id); err != nil {
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

// SessionEvents returns up to limit rows with seq above since, in order.
func (s *Store) SessionEvents(ctx context.Context, sessionID string, since int64, limit int) ([]glasses.Event, error) {
	rows, err := s.reads.QueryContext(ctx, `SELECT `+eventColumns+` FROM events
		WHERE session_id = $1 AND seq > $2 ORDER BY seq LIMIT $3`, sessionID, since, limit)
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

// LastDisplay is the last display command of a session whose result was ok; ok is false when there is none.
func (s *Store) LastDisplay(ctx context.Context, sessionID string) (e glasses.Event, ok bool, err error) {
	e, err = scanEvent(s.reads.QueryRowContext(ctx, `SELECT `+eventColumns+` FROM events r
		WHERE session_id = $1 AND kind = 'request' AND type IN ($2, $3)
		AND EXISTS (SELECT 1 FROM events x WHERE x.session_id = r.session_id AND x.frame_id = r.frame_id AND x.kind = 'result' AND x.ok = 1)
		ORDER BY seq DESC LIMIT 1`, sessionID, glasses.TypeDisplayShow, glasses.TypeDisplayClear))
	if errors.Is(err, sql.ErrNoRows) {
		return glasses.Event{}, false, nil
	}
	return e, err == nil, err
}
