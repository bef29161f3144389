package sqlstore

import (
	"context"
	"database/sql"
	"time"

	"github.com/google/uuid"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/audit"
)

// InsertMailToken stores a mailed link and deletes the earlier link with the same purpose. If limit is above 0, it
// returns account.ErrTooManyMails or account.ErrAddressMailed if that many mails were sent to the account or the
// address since the given time.
func (s *Store) InsertMailToken(ctx context.Context, t account.MailToken, since time.Time, limit int) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		if err := lockAccount(ctx, tx, t.AccountID); err != nil {
			return err
		}
		if limit > 0 {
			if err := s.countMail(ctx, tx, t, since, limit); err != nil {
				return err
			}
		}
		return execAll(ctx, tx, "insert mail token",
			stmt("DELETE FROM mail_tokens WHERE account_id = $1 AND purpose = $2 OR expires_at < $3",
				t.AccountID, t.Purpose, toMS(t.CreatedAt)),
			stmt(`INSERT INTO mail_tokens (hash, account_id, purpose, email, created_at, expires_at)
				VALUES ($1, $2, $3, $4, $5, $6)`,
				t.Hash, t.AccountID, t.Purpose, t.Email, toMS(t.CreatedAt), toMS(t.ExpiresAt)))
	})
}

// lockAddress blocks other mails to an address until the transaction ends, so that each count includes the earlier
// mails. SQLite has a single writer and needs no lock.
func (s *Store) lockAddress(ctx context.Context, tx *sql.Tx, email string) error {
	if s.engine != "postgres" {
		return nil
	}
	return execTx(ctx, tx, "lock address", "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", email)
}

func (s *Store) countMail(ctx context.Context, tx *sql.Tx, t account.MailToken, since time.Time, limit int) error {
	if err := s.lockAddress(ctx, tx, t.Email); err != nil {
		return err
	}
	if err := execTx(ctx, tx, "delete old mails", "DELETE FROM mails WHERE at <= $1", toMS(since)); err != nil {
		return err
	}
	ofAccount, err := queryValue[int](ctx, tx, "SELECT COUNT(*) FROM mails WHERE account_id = $1", t.AccountID)
	if err != nil {
		return err
	}
	ofAddress, err := queryValue[int](ctx, tx, "SELECT COUNT(*) FROM mails WHERE email = $1", t.Email)
	switch {
	case err != nil:
		return err
	case ofAccount >= limit:
		return account.ErrTooManyMails
	case ofAddress >= limit:
		return account.ErrAddressMailed
	}
	return execTx(ctx, tx, "insert mail", "INSERT INTO mails (id, account_id, email, at) VALUES ($1, $2, $3, $4)",
		uuid.NewString(), t.AccountID, t.Email, toMS(t.CreatedAt))
}

// MailToken returns account.ErrBadToken for an unknown or expired link, and account.ErrSuspended if its account is
// suspended.
func (s *Store) MailToken(ctx context.Context, hash string, now time.Time) (account.MailToken, error) {
	var active bool
	t, err := queryOne(ctx, s.reads, account.ErrBadToken, func(row scanner) (account.MailToken, error) {
		t := account.MailToken{Hash: hash}
		err := row.Scan(&t.AccountID, &t.Purpose, &t.Email, intoTime(&t.CreatedAt), intoTime(&t.ExpiresAt), &active)
		return t, err
	}, `SELECT t.account_id, t.purpose, t.email, t.created_at, t.expires_at, a.state = 'active'
		FROM mail_tokens t JOIN accounts a ON a.id = t.account_id WHERE t.hash = $1 AND t.expires_at > $2`, hash, toMS(now))
	if err == nil && !active {
		return account.MailToken{}, account.ErrSuspended
	}
	return t, err
}

// consumeToken deletes a link unless it has expired.
func consumeToken(ctx context.Context, tx *sql.Tx, t account.MailToken, now time.Time) error {
	if err := lockAccount(ctx, tx, t.AccountID); err != nil {
		return err
	}
	return mustChange(ctx, tx, account.ErrBadToken, "consume mail token",
		"DELETE FROM mail_tokens WHERE hash = $1 AND expires_at > $2", t.Hash, toMS(now))
}

// ConfirmEmail sets the account's verified address to the link's address. It returns account.ErrBadToken or
// account.ErrEmailTaken on failure.
func (s *Store) ConfirmEmail(ctx context.Context, t account.MailToken, now time.Time, e audit.Entry) error {
	err := s.writeAudited(ctx, e, func(tx *sql.Tx) error {
		if err := consumeToken(ctx, tx, t, now); err != nil {
			return err
		}
		// No row changes if the link confirms an address that the account no longer has.
		err := mustChange(ctx, tx, account.ErrBadToken, "confirm email", `UPDATE accounts SET email = $1, verified_at = $2
			WHERE id = $3 AND state = 'active' AND (email = $1 OR $4 = 1)`,
			t.Email, toMS(now), t.AccountID, boolInt(t.NewEmail()))
		if err != nil || !t.NewEmail() {
			return err
		}
		// Links mailed to the old address are no longer valid.
		return execTx(ctx, tx, "delete mail tokens", "DELETE FROM mail_tokens WHERE account_id = $1", t.AccountID)
	})
	if isDuplicate(err) {
		return account.ErrEmailTaken
	}
	return err
}

// ResetPassword sets a password with a mailed link, revokes the access selected by revoke, and ends all browser
// sessions. If the address was not verified, the account always loses its passkeys, identities and links, because
// someone else may have created it.
func (s *Store) ResetPassword(
	ctx context.Context, t account.MailToken, passwordHash string, revoke account.Access, now time.Time,
	e audit.Entry, tr audit.Trace,
) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		if err := consumeToken(ctx, tx, t, now); err != nil {
			return err
		}
		verified, err := queryValue[sql.NullInt64](ctx, tx,
			"SELECT verified_at FROM accounts WHERE id = $1 AND email = $2 AND state = 'active'", t.AccountID, t.Email)
		if err != nil {
			return replaceNoRows(err, account.ErrBadToken)
		}
		access := revoke
		if !verified.Valid {
			access = account.AllAccess()
		}
		if err := revokeAccess(ctx, tx, t.AccountID, access, now, tr); err != nil {
			return err
		}
		return execAll(ctx, tx, "reset password",
			stmt("UPDATE accounts SET password_hash = $1, verified_at = COALESCE(verified_at, $2) WHERE id = $3",
				passwordHash, toMS(now), t.AccountID),
			stmt("DELETE FROM web_sessions WHERE account_id = $1", t.AccountID),
			stmt("DELETE FROM mail_tokens WHERE account_id = $1", t.AccountID),
			auditStatement(e))
	})
}

// revokeAccess removes the selected ways to access an account, because someone else may have added them.
func revokeAccess(
	ctx context.Context, tx *sql.Tx, accountID string, access account.Access, now time.Time, t audit.Trace,
) error {
	if access.Links {
		if _, err := revokeLinks(ctx, tx, accountID, "", now, t); err != nil {
			return err
		}
	}
	var statements []statement
	if access.Passkeys {
		statements = append(statements, stmt("DELETE FROM passkeys WHERE account_id = $1", accountID))
	}
	if access.Identities {
		statements = append(statements, stmt("DELETE FROM identities WHERE account_id = $1", accountID))
	}
	return execAll(ctx, tx, "revoke access", statements...)
}
