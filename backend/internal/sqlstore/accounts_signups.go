package sqlstore

import (
	"context"
	"database/sql"
	"time"

	"github.com/service-dev/service/backend/internal/account"
)

// InsertSignUp stores a sign-up that waits for its mailed link, and drops those that are over; account.ErrTooManyMails.
func (s *Store) InsertSignUp(ctx context.Context, p account.PendingSignUp, since time.Time, most int) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		if err := s.holdAddress(ctx, tx, p.Email); err != nil {
			return err
		}
		if err := run(ctx, tx, "DELETE FROM sign_ups WHERE expires_at <= $1", toMS(p.CreatedAt)); err != nil {
			return err
		}
		var n int
		err := tx.QueryRowContext(ctx, "SELECT COUNT(*) FROM sign_ups WHERE email = $1 AND created_at > $2", p.Email, toMS(since)).Scan(&n)
		if err != nil {
			return err
		}
		if n >= most {
			return account.ErrTooManyMails
		}
		return run(ctx, tx, "INSERT INTO sign_ups (hash, email, password_hash, next, created_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6)",
			p.Hash, p.Email, p.PasswordHash, p.Next, toMS(p.CreatedAt), toMS(p.ExpiresAt))
	})
}

// SignUpByToken answers account.ErrBadToken for an unknown or overdue one.
func (s *Store) SignUpByToken(ctx context.Context, hash string, now time.Time) (account.PendingSignUp, error) {
	p := account.PendingSignUp{Hash: hash}
	var created, expires int64
	err := s.reads.QueryRowContext(ctx, "SELECT email, password_hash, next, created_at, expires_at FROM sign_ups WHERE hash = $1 AND expires_at > $2",
		hash, toMS(now)).Scan(&p.Email, &p.PasswordHash, &p.Next, &created, &expires)
	if err != nil {
		return account.PendingSignUp{}, missing(err, account.ErrBadToken)
	}
	p.CreatedAt, p.ExpiresAt = fromMS(created), fromMS(expires)
	return p, nil
}

// FinishSignUp uses the sign-up up and makes its account; what else waits for the address goes with it.
// account.ErrBadToken, account.ErrEmailTaken.
func (s *Store) FinishSignUp(ctx context.Context, hash string, a account.Account) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		used, err := changed(ctx, tx, "DELETE FROM sign_ups WHERE hash = $1 AND expires_at > $2", hash, toMS(a.CreatedAt))
		if err != nil {
			return err
		}
		if !used {
			return account.ErrBadToken
		}
		if err := run(ctx, tx, "DELETE FROM sign_ups WHERE email = $1", a.Email); err != nil {
			return err
		}
		return insertAccount(ctx, tx, a)
	})
}
