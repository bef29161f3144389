package sqlstore

import (
	"context"
	"database/sql"
	"time"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/audit"
)

// AccountByIdentity answers account.ErrNotFound, and notes the use of an identity.
func (s *Store) AccountByIdentity(ctx context.Context, provider, subject string, now time.Time) (account.Account, error) {
	a, err := scanAccount(s.reads.QueryRowContext(ctx, "SELECT "+accountColumns+` FROM identities i JOIN accounts a ON a.id = i.account_id
		WHERE i.provider = $1 AND i.subject = $2`, provider, subject))
	if err != nil {
		return account.Account{}, missing(err, account.ErrNotFound)
	}
	return a, s.write(ctx, func(tx *sql.Tx) error {
		return run(ctx, tx, "UPDATE identities SET used_at = $1 WHERE provider = $2 AND subject = $3", toMS(now), provider, subject)
	})
}

func insertIdentity(ctx context.Context, tx *sql.Tx, accountID string, id account.LinkedIdentity) (bool, error) {
	return changed(ctx, tx, `INSERT INTO identities (provider, subject, account_id, email, linked_at, used_at)
		VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (provider, subject) DO NOTHING`,
		id.Provider, id.Subject, accountID, id.Email, toMS(id.LinkedAt), toMS(id.UsedAt))
}

// InsertIdentity answers account.ErrIdentityTaken; for the account's own it changes nothing and answers false.
func (s *Store) InsertIdentity(ctx context.Context, id account.LinkedIdentity, e audit.Entry) (made bool, err error) {
	err = s.write(ctx, func(tx *sql.Tx) error {
		if made, err = insertIdentity(ctx, tx, e.AccountID, id); err != nil {
			return err
		}
		if made {
			return insertAudit(ctx, tx, e)
		}
		var owner string
		err = tx.QueryRowContext(ctx, "SELECT account_id FROM identities WHERE provider = $1 AND subject = $2", id.Provider, id.Subject).Scan(&owner)
		if err == nil && owner != e.AccountID {
			return account.ErrIdentityTaken
		}
		return err
	})
	return made, err
}

// InsertAccountWith makes an account and its identity: account.ErrEmailTaken, account.ErrIdentityTaken.
func (s *Store) InsertAccountWith(ctx context.Context, a account.Account, id account.LinkedIdentity) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		if err := insertAccount(ctx, tx, a); err != nil {
			return err
		}
		made, err := insertIdentity(ctx, tx, a.ID, id)
		if err == nil && !made {
			return account.ErrIdentityTaken
		}
		return err
	})
}

// Identities lists what signs in to the account from elsewhere, the first linked first.
func (s *Store) Identities(ctx context.Context, accountID string) ([]account.LinkedIdentity, error) {
	rows, err := s.reads.QueryContext(ctx, `SELECT provider, subject, email, linked_at, used_at FROM identities
		WHERE account_id = $1 ORDER BY linked_at, provider, subject`, accountID)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []account.LinkedIdentity
	for rows.Next() {
		var id account.LinkedIdentity
		var linked, used int64
		if err := rows.Scan(&id.Provider, &id.Subject, &id.Email, &linked, &used); err != nil {
			return nil, err
		}
		id.LinkedAt, id.UsedAt = fromMS(linked), fromMS(used)
		all = append(all, id)
	}
	return all, rows.Err()
}

// DeleteIdentity answers account.ErrNotFound and account.ErrLastWayIn.
func (s *Store) DeleteIdentity(ctx context.Context, provider, subject string, e audit.Entry) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		if err := holdAccount(ctx, tx, e.AccountID); err != nil {
			return err
		}
		gone, err := changed(ctx, tx, "DELETE FROM identities WHERE provider = $1 AND subject = $2 AND account_id = $3", provider, subject, e.AccountID)
		if err != nil {
			return err
		}
		if !gone {
			return account.ErrNotFound
		}
		if left, err := waysIn(ctx, tx, e.AccountID); err != nil || left == 0 {
			return orErr(err, account.ErrLastWayIn)
		}
		return insertAudit(ctx, tx, e)
	})
}

func orErr(err, own error) error {
	if err != nil {
		return err
	}
	return own
}

// waysIn counts what signs in to the account.
func waysIn(ctx context.Context, tx *sql.Tx, accountID string) (n int, err error) {
	err = tx.QueryRowContext(ctx, `SELECT (SELECT COUNT(*) FROM identities WHERE account_id = $1) + (SELECT COUNT(*) FROM passkeys WHERE account_id = $1)
		+ (SELECT COUNT(*) FROM accounts WHERE id = $1 AND password_hash <> '')`, accountID).Scan(&n)
	return n, err
}
