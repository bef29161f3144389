package sqlstore

import (
	"context"
	"database/sql"
	"time"

	"github.com/google/uuid"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/audit"
)

// holdAccount keeps other changes of the account waiting until the transaction ends, on both engines.
func holdAccount(ctx context.Context, tx *sql.Tx, accountID string) error {
	hit, err := changed(ctx, tx, "UPDATE accounts SET state = state WHERE id = $1", accountID)
	if err == nil && !hit {
		return account.ErrNotFound
	}
	return err
}

// InsertMailToken stores a link in place of the earlier one of its purpose; account.ErrTooManyMails.
func (s *Store) InsertMailToken(ctx context.Context, t account.MailToken, since time.Time, most int) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		if err := holdAccount(ctx, tx, t.AccountID); err != nil {
			return err
		}
		if most > 0 {
			if err := s.countMail(ctx, tx, t, since, most); err != nil {
				return err
			}
		}
		err := run(ctx, tx, "DELETE FROM mail_tokens WHERE account_id = $1 AND purpose = $2 OR expires_at < $3", t.AccountID, t.Purpose, toMS(t.CreatedAt))
		if err != nil {
			return err
		}
		return run(ctx, tx, "INSERT INTO mail_tokens (hash, account_id, purpose, email, created_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6)",
			t.Hash, t.AccountID, t.Purpose, t.Email, toMS(t.CreatedAt), toMS(t.ExpiresAt))
	})
}

// holdAddress keeps others who would mail to an address waiting until the transaction ends, so that each counts the mail of
// those before. SQLite has one writer.
func (s *Store) holdAddress(ctx context.Context, tx *sql.Tx, email string) error {
	if s.engine != "postgres" {
		return nil
	}
	return run(ctx, tx, "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", email)
}

func (s *Store) countMail(ctx context.Context, tx *sql.Tx, t account.MailToken, since time.Time, most int) error {
	if err := s.holdAddress(ctx, tx, t.Email); err != nil {
		return err
	}
	if err := run(ctx, tx, "DELETE FROM mails WHERE at <= $1", toMS(since)); err != nil {
		return err
	}
	var own, address int
	if err := tx.QueryRowContext(ctx, "SELECT COUNT(*) FROM mails WHERE account_id = $1", t.AccountID).Scan(&own); err != nil {
		return err
	}
	if err := tx.QueryRowContext(ctx, "SELECT COUNT(*) FROM mails WHERE email = $1", t.Email).Scan(&address); err != nil {
		return err
	}
	switch {
	case own >= most:
		return account.ErrTooManyMails
	case address >= most:
		return account.ErrAddressMailed
	}
	return run(ctx, tx, "INSERT INTO mails (id, account_id, email, at) VALUES ($1, $2, $3, $4)", uuid.NewString(), t.AccountID, t.Email, toMS(t.CreatedAt))
}

// MailToken answers account.ErrBadToken for an unknown or overdue link, account.ErrSuspended for a suspended account's.
func (s *Store) MailToken(ctx context.Context, hash string, now time.Time) (account.MailToken, error) {
	t := account.MailToken{Hash: hash}
	var created, expires int64
	var state string
	err := s.reads.QueryRowContext(ctx, `SELECT t.account_id, t.purpose, t.email, t.created_at, t.expires_at, a.state
		FROM mail_tokens t JOIN accounts a ON a.id = t.account_id WHERE t.hash = $1 AND t.expires_at > $2`, hash, toMS(now)).
		Scan(&t.AccountID, &t.Purpose, &t.Email, &created, &expires, &state)
	if err != nil {
		return account.MailToken{}, missing(err, account.ErrBadToken)
	}
	if state != "active" {
		return account.MailToken{}, account.ErrSuspended
	}
	t.CreatedAt, t.ExpiresAt = fromMS(created), fromMS(expires)
	return t, nil
}

// useToken uses a link up, once and in time.
func useToken(ctx context.Context, tx *sql.Tx, t account.MailToken, now time.Time) error {
	if err := holdAccount(ctx, tx, t.AccountID); err != nil {
		return err
	}
	used, err := changed(ctx, tx, "DELETE FROM mail_tokens WHERE hash = $1 AND expires_at > $2", t.Hash, toMS(now))
	if err == nil && !used {
		return account.ErrBadToken
	}
	return err
}

// ConfirmEmail gives the account the link's address as a verified one: account.ErrBadToken, account.ErrEmailTaken.
func (s *Store) ConfirmEmail(ctx context.Context, t account.MailToken, now time.Time, e audit.Entry) error {
	err := s.write(ctx, func(tx *sql.Tx) error {
		if err := useToken(ctx, tx, t, now); err != nil {
			return err
		}
		proved, err := changed(ctx, tx, "UPDATE accounts SET email = $1, verified_at = $2 WHERE id = $3 AND state = 'active' AND (email = $1 OR $4 = 1)",
			t.Email, toMS(now), t.AccountID, boolInt(t.NewEmail()))
		if err != nil {
			return err
		}
		if !proved {
			return account.ErrBadToken // of an address that the account no longer has
		}
		if t.NewEmail() { // what was mailed to the old address is void
			if err := run(ctx, tx, "DELETE FROM mail_tokens WHERE account_id = $1", t.AccountID); err != nil {
				return err
			}
		}
		return insertAudit(ctx, tx, e)
	})
	if duplicate(err) {
		return account.ErrEmailTaken
	}
	return err
}

// ResetPassword sets a password by a mailed link, revokes what revoke says and ends all browser sessions; an account
// whose address was not verified loses its passkeys, identities and links in any case.
func (s *Store) ResetPassword(ctx context.Context, t account.MailToken, passwordHash string, revoke account.Access, now time.Time, e audit.Entry, tr audit.Trace) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		if err := useToken(ctx, tx, t, now); err != nil {
			return err
		}
		var verified sql.NullInt64
		err := tx.QueryRowContext(ctx, "SELECT verified_at FROM accounts WHERE id = $1 AND email = $2 AND state = 'active'", t.AccountID, t.Email).Scan(&verified)
		if err != nil {
			return missing(err, account.ErrBadToken)
		}
		gone := revoke
		if !verified.Valid { // somebody else may have made the account
			gone = account.AllAccess()
		}
		return inTurn(
			func() error { return dropAccess(ctx, tx, t.AccountID, gone, now, tr) },
			func() error {
				return run(ctx, tx, "UPDATE accounts SET password_hash = $1, verified_at = COALESCE(verified_at, $2) WHERE id = $3",
					passwordHash, toMS(now), t.AccountID)
			},
			func() error { return run(ctx, tx, "DELETE FROM web_sessions WHERE account_id = $1", t.AccountID) },
			func() error { return run(ctx, tx, "DELETE FROM mail_tokens WHERE account_id = $1", t.AccountID) },
			func() error { return insertAudit(ctx, tx, e) })
	})
}

// dropAccess takes away what somebody else may have left in an account. Approved codes that are not redeemed yet would
// become links: they go with those.
func dropAccess(ctx context.Context, tx *sql.Tx, accountID string, gone account.Access, now time.Time, t audit.Trace) error {
	if gone.Links {
		if err := denyApproved(ctx, tx, accountID, t); err != nil {
			return err
		}
		links, err := returned(ctx, tx, "UPDATE links SET revoked_at = $1 WHERE account_id = $2 AND revoked_at IS NULL RETURNING id, account_id", toMS(now), accountID)
		if err != nil {
			return err
		}
		if err := traceRevoked(ctx, tx, t, links); err != nil {
			return err
		}
	}
	if gone.Passkeys {
		if err := run(ctx, tx, "DELETE FROM passkeys WHERE account_id = $1", accountID); err != nil {
			return err
		}
	}
	if gone.Identities {
		return run(ctx, tx, "DELETE FROM identities WHERE account_id = $1", accountID)
	}
	return nil
}
