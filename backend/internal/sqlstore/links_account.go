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
	rows, err := s.reads.QueryContext(ctx, `SELECT l.id, l.host, l.os, l.client, l.ip, l.linked_at, l.expires_at, l.used_at, l.last_used_at, l.last_ip, a.state
		FROM links l JOIN accounts a ON a.id = l.account_id WHERE l.account_id = $1 AND l.revoked_at IS NULL
		ORDER BY COALESCE(l.last_used_at, l.linked_at) DESC, l.id`, accountID)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []link.Link
	for rows.Next() {
		l := link.Link{AccountID: accountID}
		var linked int64
		var expires, used, last sql.NullInt64
		var state string
		if err := rows.Scan(&l.ID, &l.Requester.Host, &l.Requester.OS, &l.Requester.Client, &l.Requester.IP, &linked, &expires, &used, &last, &l.LastIP, &state); err != nil {
			return nil, err
		}
		l.LinkedAt, l.ExpiresAt, l.UsedAt, l.LastUsedAt, l.Active = fromMS(linked), fromNull(expires), fromNull(used), fromNull(last), state == "active"
		all = append(all, l)
	}
	return all, rows.Err()
}

// RevokeLinks revokes the live link of the entry's account with that id, or with linkID "" all of them. Codes that were
// approved and not redeemed yet would become links: with all of them they end too.
func (s *Store) RevokeLinks(ctx context.Context, linkID string, now time.Time, e audit.Entry) (int, error) {
	var n int64
	err := s.write(ctx, func(tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, "UPDATE links SET revoked_at = $1 WHERE account_id = $2 AND revoked_at IS NULL AND ($3 = '' OR id = $3)",
			toMS(now), e.AccountID, linkID)
		if err != nil {
			return err
		}
		if linkID == "" {
			if err := run(ctx, tx, "UPDATE device_codes SET state = 'denied' WHERE account_id = $1 AND state = 'approved'", e.AccountID); err != nil {
				return err
			}
		}
		if n, err = result.RowsAffected(); err != nil || n == 0 {
			return err
		}
		return insertAudit(ctx, tx, e)
	})
	return int(n), err
}
