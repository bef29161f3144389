package sqlstore

import (
	"context"
	"database/sql"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/link"
)

// AccountLinks lists the links that are not revoked, the last used first.
func (s *Store) AccountLinks(ctx context.Context, accountID string) ([]link.Link, error) {
	return s.listLinks(ctx, "l.account_id = $1 AND l.revoked_at IS NULL", accountID)
}

func (s *Store) listLinks(ctx context.Context, where, arg string) ([]link.Link, error) {
	rows, err := s.reads.QueryContext(ctx, `SELECT l.id, l.account_id, l.host, l.os, l.client, l.ip, l.linked_at, l.expires_at, l.used_at, l.last_used_at,
		l.last_ip, l.revoked_at, a.state FROM links l JOIN accounts a ON a.id = l.account_id WHERE `+where+` ORDER BY COALESCE(l.last_used_at, l.linked_at) DESC, l.id`, arg) //nolint:gosec // constants
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []link.Link
	for rows.Next() {
		var l link.Link
		var linked int64
		var expires, used, last, revoked sql.NullInt64
		var state string
		who := &l.Requester
		if err := rows.Scan(&l.ID, &l.AccountID, &who.Host, &who.OS, &who.Client, &who.IP, &linked, &expires, &used, &last, &l.LastIP, &revoked, &state); err != nil {
			return nil, err
		}
		l.LinkedAt, l.ExpiresAt, l.UsedAt, l.LastUsedAt = fromMS(linked), fromNull(expires), fromNull(used), fromNull(last)
		l.RevokedAt, l.Active = fromNull(revoked), state == "active"
		all = append(all, l)
	}
	return all, rows.Err()
}

// RevokeLinks revokes the live link of the entry's account with that id, or with linkID "" all of them. Codes that were
// approved and not redeemed yet would become links: with all of them they end too.
func (s *Store) RevokeLinks(ctx context.Context, linkID string, now time.Time, e audit.Entry, t audit.Trace) (int, error) {
	var gone [][2]string
	err := s.write(ctx, func(tx *sql.Tx) (err error) {
		if linkID == "" { // before the links: see denyApproved
			if err := denyApproved(ctx, tx, e.AccountID, t); err != nil {
				return err
			}
		}
		gone, err = returned(ctx, tx, `UPDATE links SET revoked_at = $1 WHERE account_id = $2 AND revoked_at IS NULL AND ($3 = '' OR id = $3)
			RETURNING id, account_id`, toMS(now), e.AccountID, linkID)
		if err != nil {
			return err
		}
		if len(gone) == 0 {
			return nil
		}
		if err := traceRevoked(ctx, tx, t, gone); err != nil {
			return err
		}
		return insertAudit(ctx, tx, e)
	})
	return len(gone), err
}
