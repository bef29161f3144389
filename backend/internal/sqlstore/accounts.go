package sqlstore

import (
	"context"
	"database/sql"
	"time"

	"github.com/service-dev/service/backend/internal/account"
)

const accountColumns = "a.id, a.email, a.password_hash, a.state, a.privacy_accepted_at, a.created_at"

func scanAccount(row *sql.Row) (account.Account, error) {
	var a account.Account
	var state string
	var accepted, created int64
	if err := row.Scan(&a.ID, &a.Email, &a.PasswordHash, &state, &accepted, &created); err != nil {
		return account.Account{}, err
	}
	a.Active, a.PrivacyAccepted, a.CreatedAt = state == "active", fromMS(accepted), fromMS(created)
	return a, nil
}

// InsertAccount answers account.ErrEmailTaken.
func (s *Store) InsertAccount(ctx context.Context, a account.Account) error {
	err := s.write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO accounts (id, email, password_hash, state, privacy_accepted_at, created_at)
			VALUES ($1, $2, $3, 'active', $4, $5)`, a.ID, a.Email, a.PasswordHash, toMS(a.PrivacyAccepted), toMS(a.CreatedAt))
		return err
	})
	if duplicate(err) {
		return account.ErrEmailTaken
	}
	return err
}

// AccountByEmail answers account.ErrBadCredentials when there is none.
func (s *Store) AccountByEmail(ctx context.Context, email string) (account.Account, error) {
	a, err := scanAccount(s.reads.QueryRowContext(ctx, "SELECT "+accountColumns+" FROM accounts a WHERE a.email = $1", email))
	return a, missing(err, account.ErrBadCredentials)
}

// InsertWebSession stores a browser session and drops those that are over.
func (s *Store) InsertWebSession(ctx context.Context, hash, accountID string, created, expires time.Time) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "DELETE FROM web_sessions WHERE expires_at < $1", toMS(created)); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, "INSERT INTO web_sessions (hash, account_id, created_at, expires_at) VALUES ($1, $2, $3, $4)",
			hash, accountID, toMS(created), toMS(expires))
		return err
	})
}

// AccountByWebSession answers account.ErrNoSession for an unknown or expired session.
func (s *Store) AccountByWebSession(ctx context.Context, hash string, now time.Time) (account.Account, error) {
	a, err := scanAccount(s.reads.QueryRowContext(ctx, "SELECT "+accountColumns+` FROM web_sessions w JOIN accounts a ON a.id = w.account_id
		WHERE w.hash = $1 AND w.expires_at > $2`, hash, toMS(now)))
	return a, missing(err, account.ErrNoSession)
}

// DeleteWebSession forgets a browser session; an unknown one is no error.
func (s *Store) DeleteWebSession(ctx context.Context, hash string) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "DELETE FROM web_sessions WHERE hash = $1", hash)
		return err
	})
}
