package sqlstore

import (
	"context"
	"database/sql"
	"time"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/audit"
)

// AccountOverviews returns the first limit accounts, oldest first. If email is not empty, it returns only the account
// with that stored address.
func (s *Store) AccountOverviews(ctx context.Context, email string, limit int) ([]account.Overview, error) {
	return queryAll(ctx, s.reads, func(row scanner) (o account.Overview, err error) {
		err = row.Scan(&o.ID, &o.Email, &o.Links, &o.Passkeys)
		return o, err
	}, `SELECT a.id, a.email,
			(SELECT COUNT(*) FROM links l WHERE l.account_id = a.id AND l.revoked_at IS NULL),
			(SELECT COUNT(*) FROM passkeys p WHERE p.account_id = a.id)
		FROM accounts a WHERE $1 = '' OR a.email = $1 ORDER BY a.created_at, a.id LIMIT $2`, email, limit)
}

// ReplacePassword sets the password of the entry's account, ends its browser sessions and mailed links, and revokes the
// access selected by revoke. Unlike ResetPassword, it proves nothing about the e-mail address, so it keeps all other
// access even if the address is not verified. It returns account.ErrSuspended if the account is not active.
func (s *Store) ReplacePassword(
	ctx context.Context, passwordHash string, revoke account.Access, now time.Time, e audit.Entry, tr audit.Trace,
) (ended account.Ended, err error) {
	err = s.write(ctx, func(tx *sql.Tx) error {
		err := mustChange(ctx, tx, account.ErrSuspended, "replace password",
			"UPDATE accounts SET password_hash = $1 WHERE id = $2 AND state = 'active'", passwordHash, e.AccountID)
		if err != nil {
			return err
		}
		if ended, err = countAccess(ctx, tx, e.AccountID, revoke, now); err != nil {
			return err
		}
		if err := revokeAccess(ctx, tx, e.AccountID, revoke, now, tr); err != nil {
			return err
		}
		return execAll(ctx, tx, "replace password",
			stmt("DELETE FROM web_sessions WHERE account_id = $1", e.AccountID),
			stmt("DELETE FROM mail_tokens WHERE account_id = $1", e.AccountID),
			auditStatement(e))
	})
	return ended, err
}

// countAccess counts the browser sessions of an account, and the links and passkeys that revoke selects.
func countAccess(
	ctx context.Context, tx *sql.Tx, accountID string, revoke account.Access, now time.Time,
) (n account.Ended, err error) {
	n.Browsers, err = queryValue[int](ctx, tx,
		"SELECT COUNT(*) FROM web_sessions WHERE account_id = $1 AND expires_at > $2", accountID, toMS(now))
	if err == nil && revoke.Links {
		n.Links, err = queryValue[int](ctx, tx,
			"SELECT COUNT(*) FROM links WHERE account_id = $1 AND revoked_at IS NULL", accountID)
	}
	if err == nil && revoke.Passkeys {
		n.Passkeys, err = queryValue[int](ctx, tx, "SELECT COUNT(*) FROM passkeys WHERE account_id = $1", accountID)
	}
	return n, err
}
