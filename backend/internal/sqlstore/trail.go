package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
)

// trace writes the line of a change in its transaction; the zero trace writes none.
func trace(ctx context.Context, tx *sql.Tx, t audit.Trace, codeHash, linkID, accountID string) error {
	if t.Empty() {
		return nil
	}
	return insertTrail(ctx, tx, t.Line(codeHash, linkID, accountID))
}

// insertTrail leaves a line alone that is there already.
func insertTrail(ctx context.Context, tx *sql.Tx, l audit.TrailLine) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO link_trail (id, at, action, code_ref, link_ref, account_ref, address_ref)
		VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (id) DO NOTHING`,
		l.ID, toMS(l.At), l.Action, l.Code, l.Link, l.Account, l.Address)
	if err != nil {
		return fmt.Errorf("writing the link trail: %w", err)
	}
	return nil
}

// AddTrail writes a line of its own, of something that changed no row. One that is there already costs no write.
func (s *Store) AddTrail(ctx context.Context, l audit.TrailLine) error {
	var one int
	err := s.reads.QueryRowContext(ctx, "SELECT 1 FROM link_trail WHERE id = $1", l.ID).Scan(&one)
	if !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	return s.write(ctx, func(tx *sql.Tx) error { return insertTrail(ctx, tx, l) })
}

// Trail lists lines, newest first.
func (s *Store) Trail(ctx context.Context, f audit.TrailFilter) ([]audit.TrailLine, error) {
	query, args := "SELECT id, at, action, code_ref, link_ref, account_ref, address_ref FROM link_trail WHERE 1 = 1", []any{}
	for _, n := range [][2]string{{"code_ref", f.Code}, {"link_ref", f.Link}, {"account_ref", f.Account}, {"address_ref", f.Address}} {
		if n[1] != "" {
			args = append(args, n[1])
			query += " AND " + n[0] + " = $" + strconv.Itoa(len(args))
		}
	}
	limit := f.Limit
	if limit == 0 {
		limit = audit.MaxTrailListed
	}
	query += " ORDER BY at DESC, id DESC LIMIT " + strconv.Itoa(min(max(limit, 1), audit.MaxTrailListed))
	rows, err := s.reads.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []audit.TrailLine
	for rows.Next() {
		var l audit.TrailLine
		var at int64
		if err := rows.Scan(&l.ID, &at, &l.Action, &l.Code, &l.Link, &l.Account, &l.Address); err != nil {
			return nil, err
		}
		l.At = fromMS(at)
		all = append(all, l)
	}
	return all, rows.Err()
}

// trailPart is how many lines go in one transaction: other writes wait no longer than that takes.
const trailPart = 2000

// SweepTrail drops lines from before old, and of audit.AnybodysTrail the oldest beyond keep; it counts them.
func (s *Store) SweepTrail(ctx context.Context, old time.Time, keep int) (int64, error) {
	dropped, err := s.dropTrail(ctx, "at < $1", toMS(old))
	if err != nil {
		return dropped, err
	}
	var actions []string
	for _, a := range audit.AnybodysTrail() {
		actions = append(actions, "'"+string(a)+"'")
	}
	anybodys := "action IN (" + strings.Join(actions, ", ") + ")"
	var last int64
	err = s.reads.QueryRowContext(ctx, "SELECT at FROM link_trail WHERE "+anybodys+" ORDER BY at DESC LIMIT 1 OFFSET $1", keep-1).Scan(&last)
	if errors.Is(err, sql.ErrNoRows) {
		return dropped, nil
	}
	if err != nil {
		return dropped, err
	}
	more, err := s.dropTrail(ctx, "at < $1 AND "+anybodys, last)
	return dropped + more, err
}

// dropTrail deletes the lines that a condition on $1 hits, part after part.
func (s *Store) dropTrail(ctx context.Context, where string, at int64) (dropped int64, err error) {
	for {
		n, err := s.deleteRows(ctx, "DELETE FROM link_trail WHERE id IN (SELECT id FROM link_trail WHERE "+where+" LIMIT $2)", at, trailPart)
		dropped += n
		if err != nil || n < trailPart {
			return dropped, err
		}
	}
}

// returned reads what an UPDATE of links or device_codes returns: an id and the account's.
func returned(ctx context.Context, tx *sql.Tx, statement string, args ...any) (all [][2]string, err error) {
	rows, err := tx.QueryContext(ctx, statement, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		var account sql.NullString
		if err := rows.Scan(&id, &account); err != nil {
			return nil, err
		}
		all = append(all, [2]string{id, account.String})
	}
	return all, rows.Err()
}

// traceRevoked writes a line for each link that a statement revoked.
func traceRevoked(ctx context.Context, tx *sql.Tx, t audit.Trace, links [][2]string) error {
	for _, l := range links {
		if err := trace(ctx, tx, t, "", l[0], l[1]); err != nil {
			return err
		}
	}
	return nil
}

// denyApproved ends the codes that an account approved and nobody redeemed yet: they would become links. Who revokes links
// too does that afterwards: this waits for a code that is being redeemed, and its link is there then.
func denyApproved(ctx context.Context, tx *sql.Tx, accountID string, t audit.Trace) error {
	codes, err := returned(ctx, tx, "UPDATE device_codes SET state = 'denied' WHERE account_id = $1 AND state = 'approved' RETURNING user_hash, account_id", accountID)
	if err != nil {
		return err
	}
	t.Action = audit.TrailDeny
	for _, c := range codes {
		if err := trace(ctx, tx, t, c[0], "", c[1]); err != nil {
			return err
		}
	}
	return nil
}
