package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/audit"
)

const accountColumns = "a.id, a.email, a.password_hash, a.state, a.privacy_accepted_at, a.created_at, a.verified_at"

// scanAccount reads accountColumns and whatever else the query asks for.
func scanAccount(row *sql.Row, more ...any) (account.Account, error) {
	var a account.Account
	var state string
	var accepted, created int64
	var verified sql.NullInt64
	if err := row.Scan(append([]any{&a.ID, &a.Email, &a.PasswordHash, &state, &accepted, &created, &verified}, more...)...); err != nil {
		return account.Account{}, err
	}
	a.Active, a.PrivacyAccepted, a.CreatedAt, a.VerifiedAt = state == "active", fromMS(accepted), fromMS(created), fromNull(verified)
	return a, nil
}

func insertAccount(ctx context.Context, tx *sql.Tx, a account.Account) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO accounts (id, email, password_hash, state, privacy_accepted_at, created_at, verified_at)
		VALUES ($1, $2, $3, 'active', $4, $5, $6)`, a.ID, a.Email, a.PasswordHash, toMS(a.PrivacyAccepted), toMS(a.CreatedAt), orNull(a.VerifiedAt))
	if duplicate(err) {
		return account.ErrEmailTaken
	}
	return err
}

// InsertAccount answers account.ErrEmailTaken.
func (s *Store) InsertAccount(ctx context.Context, a account.Account) error {
	return s.write(ctx, func(tx *sql.Tx) error { return insertAccount(ctx, tx, a) })
}

// AccountByEmail answers account.ErrBadCredentials when there is none.
func (s *Store) AccountByEmail(ctx context.Context, email string) (account.Account, error) {
	a, err := scanAccount(s.reads.QueryRowContext(ctx, "SELECT "+accountColumns+" FROM accounts a WHERE a.email = $1", email))
	return a, missing(err, account.ErrBadCredentials)
}

// AccountByID answers account.ErrNotFound.
func (s *Store) AccountByID(ctx context.Context, id string) (account.Account, error) {
	a, err := scanAccount(s.reads.QueryRowContext(ctx, "SELECT "+accountColumns+" FROM accounts a WHERE a.id = $1", id))
	return a, missing(err, account.ErrNotFound)
}

// SetActive suspends or restores the entry's account; false when it was so before.
func (s *Store) SetActive(ctx context.Context, active bool, e audit.Entry, t audit.Trace) (bool, error) {
	state := map[bool]string{true: "active", false: "suspended"}
	var moved bool
	err := s.write(ctx, func(tx *sql.Tx) (err error) {
		moved, err = changed(ctx, tx, "UPDATE accounts SET state = $1 WHERE id = $2 AND state = $3", state[active], e.AccountID, state[!active])
		if err != nil || !moved {
			return err
		}
		if err := insertAudit(ctx, tx, e); err != nil {
			return err
		}
		return trace(ctx, tx, t, "", "", e.AccountID)
	})
	return moved, err
}

// SetPassword changes the password of the entry's account if it is still the one behind from, and ends every browser
// session but keepHash; account.ErrBadCredentials otherwise.
func (s *Store) SetPassword(ctx context.Context, from, to, keepHash string, e audit.Entry) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		hit, err := changed(ctx, tx, "UPDATE accounts SET password_hash = $1 WHERE id = $2 AND password_hash = $3 AND state = 'active'",
			to, e.AccountID, from)
		if err != nil {
			return err
		}
		if !hit {
			return account.ErrBadCredentials
		}
		return inTurn(
			func() error {
				return run(ctx, tx, "DELETE FROM web_sessions WHERE account_id = $1 AND hash <> $2", e.AccountID, keepHash)
			},
			func() error {
				return run(ctx, tx, "DELETE FROM mail_tokens WHERE account_id = $1 AND purpose = 'reset'", e.AccountID)
			},
			func() error { return insertAudit(ctx, tx, e) })
	})
}

// inTurn takes the steps of a write up to the first that fails: its error is the cause, and the database may have undone
// what came before.
func inTurn(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// run runs a statement whose count does not matter.
func run(ctx context.Context, tx *sql.Tx, statement string, args ...any) error {
	_, err := tx.ExecContext(ctx, statement, args...)
	return err
}

// InsertWebSession stores the browser session of an active account and drops those that are over.
func (s *Store) InsertWebSession(ctx context.Context, accountID string, b account.BrowserSession) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		if err := run(ctx, tx, "DELETE FROM web_sessions WHERE expires_at < $1", toMS(b.CreatedAt)); err != nil {
			return err
		}
		// Who changes the password holds the account too, and then signs every browser out: this one is among them, or sees
		// the new password.
		if err := holdAccount(ctx, tx, accountID); err != nil && !errors.Is(err, account.ErrNotFound) {
			return err
		}
		made, err := changed(ctx, tx, `INSERT INTO web_sessions (hash, account_id, created_at, expires_at, id, method, user_agent, ip, used_at)
			SELECT $1, a.id, $2, $3, $4, $5, $6, $7, $8 FROM accounts a WHERE a.id = $9 AND a.state = 'active' AND ($10 = '' OR a.password_hash = $10)`,
			b.Hash, toMS(b.CreatedAt), toMS(b.ExpiresAt), b.ID, b.Method, b.UserAgent, b.IP, toMS(b.UsedAt), accountID, b.PasswordHash)
		if err != nil || made {
			return err
		}
		var active int
		err = tx.QueryRowContext(ctx, "SELECT 1 FROM accounts WHERE id = $1 AND state = 'active'", accountID).Scan(&active)
		if err != nil {
			return missing(err, account.ErrSuspended)
		}
		return account.ErrBadCredentials
	})
}

// AccountByWebSession answers account.ErrNoSession for an unknown or expired session.
func (s *Store) AccountByWebSession(ctx context.Context, hash string, now time.Time) (account.Account, time.Time, error) {
	var used int64
	a, err := scanAccount(s.reads.QueryRowContext(ctx, "SELECT "+accountColumns+`, w.used_at FROM web_sessions w JOIN accounts a ON a.id = w.account_id
		WHERE w.hash = $1 AND w.expires_at > $2`, hash, toMS(now)), &used)
	return a, fromMS(used), missing(err, account.ErrNoSession)
}

// TouchWebSession notes a use.
func (s *Store) TouchWebSession(ctx context.Context, hash string, now time.Time) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		return run(ctx, tx, "UPDATE web_sessions SET used_at = $1 WHERE hash = $2 AND used_at < $1", toMS(now), hash)
	})
}

// DeleteWebSession forgets a browser session and tells whose it was; an unknown one is no error.
func (s *Store) DeleteWebSession(ctx context.Context, hash string) (accountID string, err error) {
	err = s.write(ctx, func(tx *sql.Tx) error {
		err := tx.QueryRowContext(ctx, "DELETE FROM web_sessions WHERE hash = $1 RETURNING account_id", hash).Scan(&accountID)
		return missing(err, nil)
	})
	return accountID, err
}

// EndAllWebSessions signs every browser of every account out and returns how many there were.
func (s *Store) EndAllWebSessions(ctx context.Context) (int, error) {
	var n int64
	err := s.write(ctx, func(tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, "DELETE FROM web_sessions")
		if err != nil {
			return err
		}
		n, err = result.RowsAffected()
		return err
	})
	return int(n), err
}

// WebSessions lists the browsers that are signed in, the last used first.
func (s *Store) WebSessions(ctx context.Context, accountID string, now time.Time) ([]account.BrowserSession, error) {
	rows, err := s.reads.QueryContext(ctx, `SELECT id, method, user_agent, ip, created_at, used_at, expires_at, hash FROM web_sessions
		WHERE account_id = $1 AND expires_at > $2 ORDER BY used_at DESC, id`, accountID, toMS(now))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []account.BrowserSession
	for rows.Next() {
		var b account.BrowserSession
		var created, used, expires int64
		if err := rows.Scan(&b.ID, &b.Method, &b.UserAgent, &b.IP, &created, &used, &expires, &b.Hash); err != nil {
			return nil, err
		}
		b.CreatedAt, b.UsedAt, b.ExpiresAt = fromMS(created), fromMS(used), fromMS(expires)
		all = append(all, b)
	}
	return all, rows.Err()
}

// EndWebSessions ends the one of the entry's account with that id, or with id "" all but keepHash, and counts them.
func (s *Store) EndWebSessions(ctx context.Context, id, keepHash string, e audit.Entry) (int, error) {
	var n int64
	err := s.write(ctx, func(tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, "DELETE FROM web_sessions WHERE account_id = $1 AND hash <> $2 AND ($3 = '' OR id = $3)",
			e.AccountID, keepHash, id)
		if err != nil {
			return err
		}
		if n, err = result.RowsAffected(); err != nil || n == 0 {
			return err
		}
		return insertAudit(ctx, tx, e)
	})
	return int(n), err
}
