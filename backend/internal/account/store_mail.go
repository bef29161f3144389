package account

import (
	"context"
	"database/sql"
	"time"

	"github.com/google/uuid"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/db"
	"github.com/service-dev/service/backend/internal/link"
)

// InsertMailToken stores a mailed link and deletes the earlier link with the same purpose. If limit is above 0, it
// returns ErrTooManyMails or ErrAddressMailed if that many mails were sent to the account or the address after
// since.
func (s *Store) InsertMailToken(ctx context.Context, t MailToken, since time.Time, limit int) error {
	return s.Write(ctx, func(tx *sql.Tx) error {
		if err := lockAccount(ctx, tx, t.AccountID); err != nil {
			return err
		}
		if limit > 0 {
			if err := s.countMail(ctx, tx, t, since, limit); err != nil {
				return err
			}
		}
		return db.ExecAll(ctx, tx, "insert mail token",
			db.Stmt("DELETE FROM mail_tokens WHERE account_id = $1 AND purpose = $2 OR expires_at < $3",
				t.AccountID, t.Purpose, db.ToMS(t.CreatedAt)),
			db.Stmt(`INSERT INTO mail_tokens (hash, account_id, purpose, email, created_at, expires_at)
				VALUES ($1, $2, $3, $4, $5, $6)`,
				t.Hash, t.AccountID, t.Purpose, t.Email, db.ToMS(t.CreatedAt), db.ToMS(t.ExpiresAt)))
	})
}

func (s *Store) countMail(ctx context.Context, tx *sql.Tx, t MailToken, since time.Time, limit int) error {
	if err := s.LockText(ctx, tx, t.Email); err != nil {
		return err
	}
	if err := db.Exec(ctx, tx, "delete old mails", "DELETE FROM mails WHERE at <= $1", db.ToMS(since)); err != nil {
		return err
	}
	ofAccount, err := db.QueryValue[int](ctx, tx, "SELECT COUNT(*) FROM mails WHERE account_id = $1", t.AccountID)
	if err != nil {
		return err
	}
	ofAddress, err := db.QueryValue[int](ctx, tx, "SELECT COUNT(*) FROM mails WHERE email = $1", t.Email)
	switch {
	case err != nil:
		return err
	case ofAccount >= limit:
		return ErrTooManyMails
	case ofAddress >= limit:
		return ErrAddressMailed
	}
	return db.Exec(ctx, tx, "insert mail", "INSERT INTO mails (id, account_id, email, at) VALUES ($1, $2, $3, $4)",
		uuid.NewString(), t.AccountID, t.Email, db.ToMS(t.CreatedAt))
}

// MailToken returns ErrBadToken for an unknown or expired link, and ErrSuspended if its account is
// suspended.
func (s *Store) MailToken(ctx context.Context, hash string, now time.Time) (MailToken, error) {
	var active bool
	t, err := db.One(ctx, s, ErrBadToken, func(row db.Row) (MailToken, error) {
		t := MailToken{Hash: hash}
		err := row.Scan(&t.AccountID, &t.Purpose, &t.Email, db.IntoTime(&t.CreatedAt), db.IntoTime(&t.ExpiresAt), &active)
		return t, err
	}, `SELECT t.account_id, t.purpose, t.email, t.created_at, t.expires_at, a.state = 'active'
		FROM mail_tokens t JOIN accounts a ON a.id = t.account_id WHERE t.hash = $1 AND t.expires_at > $2`, hash,
		db.ToMS(now))
	if err == nil && !active {
		return MailToken{}, ErrSuspended
	}
	return t, err
}

// consumeToken deletes a link unless it has expired.
func consumeToken(ctx context.Context, tx *sql.Tx, t MailToken, now time.Time) error {
	if err := lockAccount(ctx, tx, t.AccountID); err != nil {
		return err
	}
	return db.MustChange(ctx, tx, ErrBadToken, "consume mail token",
		"DELETE FROM mail_tokens WHERE hash = $1 AND expires_at > $2", t.Hash, db.ToMS(now))
}

// ConfirmEmail sets the account's verified address to the link's address. It returns ErrBadToken or
// ErrEmailTaken on failure.
func (s *Store) ConfirmEmail(ctx context.Context, t MailToken, now time.Time, e audit.Entry) error {
	err := audit.Write(ctx, s.DB, e, func(tx *sql.Tx) error {
		if err := consumeToken(ctx, tx, t, now); err != nil {
			return err
		}
		// The statement changes no row if the link confirms an address that the account no longer has.
		err := db.MustChange(ctx, tx, ErrBadToken, "confirm email", `UPDATE accounts SET email = $1, verified_at = $2
			WHERE id = $3 AND state = 'active' AND (email = $1 OR $4 = 1)`,
			t.Email, db.ToMS(now), t.AccountID, db.BoolInt(t.NewEmail()))
		if err != nil || !t.NewEmail() {
			return err
		}
		// Links mailed to the old address are no longer valid.
		return db.Exec(ctx, tx, "delete mail tokens", "DELETE FROM mail_tokens WHERE account_id = $1", t.AccountID)
	})
	if db.IsDuplicate(err) {
		return ErrEmailTaken
	}
	return err
}

// ResetPassword sets a password with a mailed link, revokes the access selected by revoke, and ends all browser
// sessions. If the address was not verified, the account always loses its passkeys, identities and links, because
// someone else may have created it.
func (s *Store) ResetPassword(
	ctx context.Context, t MailToken, passwordHash string, revoke Access, now time.Time,
	e audit.Entry, tr audit.Trace,
) error {
	return s.Write(ctx, func(tx *sql.Tx) error {
		if err := consumeToken(ctx, tx, t, now); err != nil {
			return err
		}
		verified, err := db.QueryValue[sql.NullInt64](ctx, tx,
			"SELECT verified_at FROM accounts WHERE id = $1 AND email = $2 AND state = 'active'", t.AccountID, t.Email)
		if err != nil {
			return db.ReplaceNoRows(err, ErrBadToken)
		}
		access := revoke
		if !verified.Valid {
			access = AllAccess()
		}
		if err := revokeAccess(ctx, tx, t.AccountID, access, now, tr); err != nil {
			return err
		}
		return db.ExecAll(ctx, tx, "reset password",
			db.Stmt("UPDATE accounts SET password_hash = $1, verified_at = COALESCE(verified_at, $2) WHERE id = $3",
				passwordHash, db.ToMS(now), t.AccountID),
			db.Stmt("DELETE FROM web_sessions WHERE account_id = $1", t.AccountID),
			db.Stmt("DELETE FROM mail_tokens WHERE account_id = $1", t.AccountID),
			audit.Statement(e))
	})
}

// revokeAccess removes the selected ways to access an account, because someone else may have added them.
func revokeAccess(
	ctx context.Context, tx *sql.Tx, accountID string, access Access, now time.Time, t audit.Trace,
) error {
	if access.Links {
		if _, err := link.Revoke(ctx, tx, accountID, "", now, t); err != nil {
			return err
		}
	}
	var statements []db.Statement
	if access.Passkeys {
		statements = append(statements, db.Stmt("DELETE FROM passkeys WHERE account_id = $1", accountID))
	}
	if access.Identities {
		statements = append(statements, db.Stmt("DELETE FROM identities WHERE account_id = $1", accountID))
	}
	return db.ExecAll(ctx, tx, "revoke access", statements...)
}

// InsertSignUp stores a sign-up until its mailed link is opened, and deletes expired sign-ups. It returns
// ErrTooManyMails if limit sign-ups for the address were stored after since.
func (s *Store) InsertSignUp(ctx context.Context, p PendingSignUp, since time.Time, limit int) error {
	return s.Write(ctx, func(tx *sql.Tx) error {
		if err := s.LockText(ctx, tx, p.Email); err != nil {
			return err
		}
		err := db.Exec(ctx, tx, "delete expired sign-ups", "DELETE FROM sign_ups WHERE expires_at <= $1",
			db.ToMS(p.CreatedAt))
		if err != nil {
			return err
		}
		n, err := db.QueryValue[int](ctx, tx, "SELECT COUNT(*) FROM sign_ups WHERE email = $1 AND created_at > $2",
			p.Email, db.ToMS(since))
		if err != nil {
			return err
		}
		if n >= limit {
			return ErrTooManyMails
		}
		return db.Exec(ctx, tx, "insert sign-up", `INSERT INTO sign_ups
				(hash, email, password_hash, next, created_at, expires_at)
			VALUES ($1, $2, $3, $4, $5, $6)`,
			p.Hash, p.Email, p.PasswordHash, p.Next, db.ToMS(p.CreatedAt), db.ToMS(p.ExpiresAt))
	})
}

// SignUpByToken returns ErrBadToken for an unknown or expired token.
func (s *Store) SignUpByToken(ctx context.Context, hash string, now time.Time) (PendingSignUp, error) {
	return db.One(ctx, s, ErrBadToken, func(row db.Row) (PendingSignUp, error) {
		p := PendingSignUp{Hash: hash}
		err := row.Scan(&p.Email, &p.PasswordHash, &p.Next, db.IntoTime(&p.CreatedAt), db.IntoTime(&p.ExpiresAt))
		return p, err
	}, `SELECT email, password_hash, next, created_at, expires_at FROM sign_ups WHERE hash = $1 AND expires_at > $2`,
		hash, db.ToMS(now))
}

// FinishSignUp deletes all sign-ups for the address and inserts the account. It returns ErrBadToken or
// ErrEmailTaken on failure.
func (s *Store) FinishSignUp(ctx context.Context, hash string, a Account) error {
	return s.Write(ctx, func(tx *sql.Tx) error {
		err := db.MustChange(ctx, tx, ErrBadToken, "consume sign-up",
			"DELETE FROM sign_ups WHERE hash = $1 AND expires_at > $2", hash, db.ToMS(a.CreatedAt))
		if err != nil {
			return err
		}
		if err := db.Exec(ctx, tx, "delete sign-ups", "DELETE FROM sign_ups WHERE email = $1", a.Email); err != nil {
			return err
		}
		return insertAccount(ctx, tx, a, ByPassword)
	})
}
