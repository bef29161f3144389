package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
)

// insertAudit writes an entry in the transaction of the change that it tells of.
func insertAudit(ctx context.Context, tx *sql.Tx, e audit.Entry) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO audit (id, account_id, at, actor, link_id, action, app_id, summary, before, after)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
		e.ID, e.AccountID, toMS(e.At), e.Actor.Kind, e.Actor.LinkID, e.Action, e.Project, e.Summary, textOrNull(e.Before), textOrNull(e.After))
	if err != nil {
		return fmt.Errorf("inserting audit entry: %w", err)
	}
	return nil
}

func textOrNull(b []byte) sql.NullString { return sql.NullString{String: string(b), Valid: b != nil} }

// InsertAudit writes an entry of its own, of something that changed no row.
func (s *Store) InsertAudit(ctx context.Context, e audit.Entry) error {
	return s.write(ctx, func(tx *sql.Tx) error { return insertAudit(ctx, tx, e) })
}

// markUndone notes that an entry was taken back by another, in the transaction that does it. It tells whether this call
// did: of two at once one does, and an entry without a before never can be.
func markUndone(ctx context.Context, tx *sql.Tx, accountID, entryID, undoneBy string) (bool, error) {
	ok, err := changed(ctx, tx, `UPDATE audit SET undone_by = $1 WHERE id = $2 AND account_id = $3 AND before IS NOT NULL AND undone_by IS NULL`,
		undoneBy, entryID, accountID)
	if err != nil {
		return false, fmt.Errorf("marking an audit entry undone: %w", err)
	}
	return ok, nil
}

const auditQuery = `SELECT a.id, a.account_id, a.at, a.actor, a.link_id, a.action, a.app_id, a.summary, a.before, a.after, a.undone_by, l.host, l.client
	FROM audit a LEFT JOIN links l ON l.id = a.link_id AND l.account_id = a.account_id WHERE a.account_id = $1`

func scanAudit(row scanner) (audit.Entry, error) {
	var e audit.Entry
	var at int64
	var before, after, undone, host, client sql.NullString
	err := row.Scan(&e.ID, &e.AccountID, &at, &e.Actor.Kind, &e.Actor.LinkID, &e.Action, &e.Project, &e.Summary, &before, &after, &undone, &host, &client)
	if err != nil {
		return audit.Entry{}, err
	}
	e.At, e.UndoneBy, e.ActorName = fromMS(at), undone.String, audit.Name(e.Actor.Kind, host.String, client.String)
	if before.Valid {
		e.Before = []byte(before.String)
	}
	if after.Valid {
		e.After = []byte(after.String)
	}
	return e, nil
}

// AuditEntries lists newest first.
func (s *Store) AuditEntries(ctx context.Context, accountID string, f audit.Filter) ([]audit.Entry, error) {
	query, args := auditQuery, []any{accountID}
	narrow := func(condition, value string) {
		args = append(args, value)
		query += condition + "$" + strconv.Itoa(len(args))
	}
	if f.Project != "" {
		narrow(" AND a.app_id = ", f.Project)
	}
	if f.Before != "" {
		narrow(" AND a.id < ", f.Before)
	}
	query += " ORDER BY a.id DESC LIMIT " + strconv.Itoa(f.Limit)
	rows, err := s.reads.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []audit.Entry
	for rows.Next() {
		e, err := scanAudit(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, rows.Err()
}

// AuditEntry returns audit.ErrNotFound.
func (s *Store) AuditEntry(ctx context.Context, accountID, id string) (audit.Entry, error) {
	e, err := scanAudit(s.reads.QueryRowContext(ctx, auditQuery+" AND a.id = $2", accountID, id))
	return e, missing(err, audit.ErrNotFound)
}

// AddAuditRead writes e unless the same actor did the same with the same project after since. The usual case, that it
// did, costs no write.
func (s *Store) AddAuditRead(ctx context.Context, e audit.Entry, since time.Time) error {
	if known, err := readSince(ctx, s.reads, e, since); known || err != nil {
		return err
	}
	return s.write(ctx, func(tx *sql.Tx) error {
		if err := lockProjects(ctx, tx, e.AccountID); err != nil {
			return err
		}
		if known, err := readSince(ctx, tx, e, since); known || err != nil {
			return err
		}
		return insertAudit(ctx, tx, e)
	})
}

func readSince(ctx context.Context, q querier, e audit.Entry, since time.Time) (bool, error) {
	var one int
	err := q.QueryRowContext(ctx, `SELECT 1 FROM audit WHERE account_id = $1 AND action = $2 AND at > $3 AND app_id = $4 AND actor = $5 AND link_id = $6 LIMIT 1`,
		e.AccountID, e.Action, toMS(since), e.Project, e.Actor.Kind, e.Actor.LinkID).Scan(&one)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// SweepAudit drops entries from before old, and the oldest of accounts that have more than keep.
func (s *Store) SweepAudit(ctx context.Context, old time.Time, keep int) (int64, error) {
	dropped, err := s.deleteRows(ctx, `DELETE FROM audit WHERE at < $1`, toMS(old))
	if err != nil {
		return 0, err
	}
	full, err := s.texts(ctx, `SELECT account_id FROM audit GROUP BY account_id HAVING COUNT(*) > $1`, keep)
	if err != nil {
		return dropped, err
	}
	for _, accountID := range full {
		n, err := s.deleteRows(ctx, `DELETE FROM audit WHERE account_id = $1 AND id <
			(SELECT id FROM audit WHERE account_id = $1 ORDER BY id DESC LIMIT 1 OFFSET $2)`, accountID, keep-1)
		if err != nil {
			return dropped, err
		}
		dropped += n
	}
	return dropped, nil
}

func (s *Store) deleteRows(ctx context.Context, statement string, args ...any) (n int64, err error) {
	err = s.write(ctx, func(tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, statement, args...)
		if err != nil {
			return err
		}
		n, err = result.RowsAffected()
		return err
	})
	return n, err
}

// texts runs a query of one column.
func (s *Store) texts(ctx context.Context, query string, args ...any) ([]string, error) {
	rows, err := s.reads.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var one string
		if err := rows.Scan(&one); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, rows.Err()
}
