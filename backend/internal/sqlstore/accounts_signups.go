package sqlstore

import (
	"context"
	"database/sql"
	"time"

	"github.com/service-dev/service/backend/internal/account"
)

// InsertSignUp stores a sign-up until its mailed link is opened, and deletes expired sign-ups. It returns
// account.ErrTooManyMails if limit sign-ups for the address were stored after since.
func (s *Store) InsertSignUp(ctx context.Context, p account.PendingSignUp, since time.Time, limit int) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		if err := s.lockAddress(ctx, tx, p.Email); err != nil {
			return err
		}
		err := execTx(ctx, tx, "delete expired sign-ups", "DELETE FROM sign_ups WHERE expires_at <= $1", toMS(p.CreatedAt))
		if err != nil {
			return err
		}
		n, err := queryValue[int](ctx, tx, "SELECT COUNT(*) FROM sign_ups WHERE email = $1 AND created_at > $2",
			p.Email, toMS(since))
		if err != nil {
			return err
		}
		if n >= limit {
			return account.ErrTooManyMails
		}
		return execTx(ctx, tx, "insert sign-up", `INSERT INTO sign_ups
				(hash, email, password_hash, next, created_at, expires_at)
			VALUES ($1, $2, $3, $4, $5, $6)`,
			p.Hash, p.Email, p.PasswordHash, p.Next, toMS(p.CreatedAt), toMS(p.ExpiresAt))
	})
}

// SignUpByToken returns account.ErrBadToken for an unknown or expired token.
func (s *Store) SignUpByToken(ctx context.Context, hash string, now time.Time) (account.PendingSignUp, error) {
	return queryOne(ctx, s.reads, account.ErrBadToken, func(row scanner) (account.PendingSignUp, error) {
		p := account.PendingSignUp{Hash: hash}
		err := row.Scan(&p.Email, &p.PasswordHash, &p.Next, intoTime(&p.CreatedAt), intoTime(&p.ExpiresAt))
		return p, err
	}, `SELECT email, password_hash, next, created_at, expires_at FROM sign_ups WHERE hash = $1 AND expires_at > $2`,
		hash, toMS(now))
}

// FinishSignUp deletes all sign-ups for the address and inserts the account. It returns account.ErrBadToken or
// account.ErrEmailTaken on failure.
func (s *Store) FinishSignUp(ctx context.Context, hash string, a account.Account) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		err := mustChange(ctx, tx, account.ErrBadToken, "consume sign-up",
			"DELETE FROM sign_ups WHERE hash = $1 AND expires_at > $2", hash, toMS(a.CreatedAt))
		if err != nil {
			return err
		}
		if err := execTx(ctx, tx, "delete sign-ups", "DELETE FROM sign_ups WHERE email = $1", a.Email); err != nil {
			return err
		}
		return insertAccount(ctx, tx, a, account.ByPassword)
	})
}
