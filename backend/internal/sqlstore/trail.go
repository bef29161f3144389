package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
)

// insertTrace inserts the trail line of a change in the same transaction. The zero trace has no line.
func insertTrace(ctx context.Context, tx *sql.Tx, t audit.Trace, codeHash, linkID, accountID string) error {
	if t.Empty() {
		return nil
	}
	return insertTrail(ctx, tx, t.Line(codeHash, linkID, accountID))
}

// insertTrail inserts a line. It does not change an existing line.
func insertTrail(ctx context.Context, tx *sql.Tx, l audit.TrailLine) error {
	return execTx(ctx, tx, "insert trail line", `INSERT INTO link_trail
			(id, at, action, code_ref, link_ref, account_ref, address_ref)
		VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (id) DO NOTHING`,
		l.ID, toMS(l.At), l.Action, l.Code, l.Link, l.Account, l.Address)
}

// insertTrail inserts lines. It does not change existing lines.
func (b bulk) insertTrail(ctx context.Context, lines []audit.TrailLine) error {
	var ids, actions, codes, links, accounts, addresses []string
	var ats []int64
	for _, l := range lines {
		ids, ats, actions = append(ids, l.ID), append(ats, toMS(l.At)), append(actions, string(l.Action))
		codes, links, accounts = append(codes, l.Code), append(links, l.Link), append(accounts, l.Account)
		addresses = append(addresses, l.Address)
	}
	return b.insert(ctx, "insert trail lines", "link_trail", " ON CONFLICT (id) DO NOTHING", len(lines),
		column{"id", ids}, column{"at", ats}, column{"action", actions}, column{"code_ref", codes},
		column{"link_ref", links}, column{"account_ref", accounts}, column{"address_ref", addresses})
}

// AddTrail inserts a line in its own transaction, for an event that changed no row. It does not change an existing
// line.
func (s *Store) AddTrail(ctx context.Context, l audit.TrailLine) error {
	known, err := hasRow(ctx, s.reads, "SELECT 1 FROM link_trail WHERE id = $1", l.ID)
	if err != nil || known {
		return err
	}
	return s.write(ctx, func(tx *sql.Tx) error { return insertTrail(ctx, tx, l) })
}

// Trail lists lines, newest first.
func (s *Store) Trail(ctx context.Context, f audit.TrailFilter) ([]audit.TrailLine, error) {
	query := "SELECT id, at, action, code_ref, link_ref, account_ref, address_ref FROM link_trail WHERE 1 = 1"
	var args []any
	for _, condition := range [][2]string{
		{"code_ref", f.Code}, {"link_ref", f.Link}, {"account_ref", f.Account}, {"address_ref", f.Address},
	} {
		if column, ref := condition[0], condition[1]; ref != "" {
			args = append(args, ref)
			query += " AND " + column + " = $" + strconv.Itoa(len(args))
		}
	}
	limit := f.Limit
	if limit == 0 {
		limit = audit.MaxTrailListed
	}
	query += " ORDER BY at DESC, id DESC LIMIT " + strconv.Itoa(min(max(limit, 1), audit.MaxTrailListed))
	return queryAll(ctx, s.reads, func(row scanner) (l audit.TrailLine, err error) {
		err = row.Scan(&l.ID, intoTime(&l.At), &l.Action, &l.Code, &l.Link, &l.Account, &l.Address)
		return l, err
	}, query, args...)
}

// maxTrailDeleted limits the lines that one transaction deletes, and therefore the time that other writes wait.
const maxTrailDeleted = 2000

// SweepTrail deletes lines from before old. Of the lines in audit.AnybodysTrail, it also deletes the oldest beyond
// keep. It returns the number of deleted lines.
func (s *Store) SweepTrail(ctx context.Context, old time.Time, keep int) (int64, error) {
	deleted, err := s.deleteTrail(ctx, "at < $1", toMS(old))
	if err != nil {
		return deleted, err
	}
	var actions []string
	for _, a := range audit.AnybodysTrail() {
		actions = append(actions, "'"+string(a)+"'")
	}
	anybodys := "action IN (" + strings.Join(actions, ", ") + ")"
	last, err := queryValue[int64](ctx, s.reads,
		"SELECT at FROM link_trail WHERE "+anybodys+" ORDER BY at DESC LIMIT 1 OFFSET $1", keep-1)
	if err != nil {
		if errors.Is(err, sql.ErrNoRows) {
			return deleted, nil
		}
		return deleted, err
	}
	more, err := s.deleteTrail(ctx, "at < $1 AND "+anybodys, last)
	return deleted + more, err
}

// deleteTrail deletes the lines that match a condition with the parameter $1.
func (s *Store) deleteTrail(ctx context.Context, where string, at int64) (deleted int64, err error) {
	for {
		n, err := s.exec(ctx, "delete trail lines",
			"DELETE FROM link_trail WHERE id IN (SELECT id FROM link_trail WHERE "+where+" LIMIT $2)", at, maxTrailDeleted)
		deleted += n
		if err != nil || n < maxTrailDeleted {
			return deleted, err
		}
	}
}
