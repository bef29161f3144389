package sqlstore

import (
	"context"
	"database/sql"
	"time"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/audit"
)

// AccountByIdentity returns the account of an identity and records the use, or returns account.ErrNotFound.
func (s *Store) AccountByIdentity(
	ctx context.Context, provider, subject string, now time.Time,
) (account.Account, error) {
	a, err := queryOne(ctx, s.reads, account.ErrNotFound, scanAccount, "SELECT "+accountColumns+` FROM identities i
		JOIN accounts a ON a.id = i.account_id WHERE i.provider = $1 AND i.subject = $2`, provider, subject)
	if err != nil {
		return account.Account{}, err
	}
	_, err = s.exec(ctx, "touch identity", "UPDATE identities SET used_at = $1 WHERE provider = $2 AND subject = $3",
		toMS(now), provider, subject)
	return a, err
}

func insertIdentity(ctx context.Context, tx *sql.Tx, accountID string, id account.LinkedIdentity) (bool, error) {
	return changed(ctx, tx, "insert identity", `INSERT INTO identities
			(provider, subject, account_id, email, linked_at, used_at)
		VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (provider, subject) DO NOTHING`,
		id.Provider, id.Subject, accountID, id.Email, toMS(id.LinkedAt), toMS(id.UsedAt))
}

// InsertIdentity adds an identity to the entry's account. It returns false if the account already has the identity,
// and account.ErrIdentityTaken if another account has it.
func (s *Store) InsertIdentity(
	ctx context.Context, id account.LinkedIdentity, e audit.Entry,
) (inserted bool, err error) {
	err = s.write(ctx, func(tx *sql.Tx) error {
		if inserted, err = insertIdentity(ctx, tx, e.AccountID, id); err != nil {
			return err
		}
		if inserted {
			return insertAudit(ctx, tx, e)
		}
		owner, err := queryValue[string](ctx, tx, "SELECT account_id FROM identities WHERE provider = $1 AND subject = $2",
			id.Provider, id.Subject)
		if err == nil && owner != e.AccountID {
			return account.ErrIdentityTaken
		}
		return err
	})
	return inserted, err
}

// InsertAccountWith inserts an account and its identity. It returns account.ErrEmailTaken or account.ErrIdentityTaken
// on failure.
func (s *Store) InsertAccountWith(ctx context.Context, a account.Account, id account.LinkedIdentity) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		if err := insertAccount(ctx, tx, a, account.ByOIDC+id.Provider); err != nil {
			return err
		}
		inserted, err := insertIdentity(ctx, tx, a.ID, id)
		return require(inserted, err, account.ErrIdentityTaken)
	})
}

// Identities lists the identities that can sign in to the account, in the order in which they were linked.
func (s *Store) Identities(ctx context.Context, accountID string) ([]account.LinkedIdentity, error) {
	return queryAll(ctx, s.reads, func(row scanner) (id account.LinkedIdentity, err error) {
		err = row.Scan(&id.Provider, &id.Subject, &id.Email, intoTime(&id.LinkedAt), intoTime(&id.UsedAt))
		return id, err
	}, `SELECT provider, subject, email, linked_at, used_at FROM identities
		WHERE account_id = $1 ORDER BY linked_at, provider, subject`, accountID)
}

// DeleteIdentity also ends the browser sessions that the provider opened, except keepHash. It returns
// account.ErrNotFound if the account does not have the identity, or account.ErrLastWayIn if no other way to sign in is
// left.
func (s *Store) DeleteIdentity(ctx context.Context, provider, subject, keepHash string, e audit.Entry) error {
	return s.deleteWayIn(ctx, e, account.ErrLastWayIn, func(tx *sql.Tx) error {
		if err := mustChange(ctx, tx, account.ErrNotFound, "delete identity",
			"DELETE FROM identities WHERE provider = $1 AND subject = $2 AND account_id = $3", provider, subject,
			e.AccountID); err != nil {
			return err
		}
		_, err := execCount(ctx, tx, "end the provider's browser sessions",
			"DELETE FROM web_sessions WHERE account_id = $1 AND method = $2 AND hash <> $3", e.AccountID,
			account.ByOIDC+provider, keepHash)
		return err
	})
}

// deleteWayIn locks the entry's account, runs remove and writes the entry. If no way to sign in to the account is left
// afterwards, it returns the error last.
func (s *Store) deleteWayIn(ctx context.Context, e audit.Entry, last error, remove func(tx *sql.Tx) error) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		if err := lockAccount(ctx, tx, e.AccountID); err != nil {
			return err
		}
		if err := remove(tx); err != nil {
			return err
		}
		left, err := queryValue[int](ctx, tx, `SELECT (SELECT COUNT(*) FROM identities WHERE account_id = $1)
			+ (SELECT COUNT(*) FROM passkeys WHERE account_id = $1)
			+ (SELECT COUNT(*) FROM accounts WHERE id = $1 AND password_hash <> '')`, e.AccountID)
		switch {
		case err != nil:
			return err
		case left == 0:
			return last
		}
		return insertAudit(ctx, tx, e)
	})
}
