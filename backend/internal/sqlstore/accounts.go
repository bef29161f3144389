package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/audit"
)

const (
	accountColumns = `a.id, a.email, a.password_hash, a.state = 'active', a.privacy_accepted_at, a.created_at,
		a.verified_at`
	selectAccount = `SELECT ` + accountColumns + ` FROM accounts a `
)

func scanAccount(row scanner) (account.Account, error) { return scanAccountAnd(row) }

// scanAccountAnd scans accountColumns and the columns after them.
func scanAccountAnd(row scanner, more ...any) (a account.Account, err error) {
	err = row.Scan(append([]any{&a.ID, &a.Email, &a.PasswordHash, &a.Active, intoTime(&a.PrivacyAccepted),
		intoTime(&a.CreatedAt), intoTime(&a.VerifiedAt)}, more...)...)
	return a, err
}

// insertAccount inserts an account and the audit entry for its sign-up with the method.
func insertAccount(ctx context.Context, tx *sql.Tx, a account.Account, method string) error {
	err := execTx(ctx, tx, "insert account", `INSERT INTO accounts
		(id, email, password_hash, state, privacy_accepted_at, created_at, verified_at)
		VALUES ($1, $2, $3, 'active', $4, $5, $6)`,
		a.ID, a.Email, a.PasswordHash, toMS(a.PrivacyAccepted), toMS(a.CreatedAt), orNull(a.VerifiedAt))
	if isDuplicate(err) {
		return account.ErrEmailTaken
	}
	if err != nil {
		return err
	}
	return insertAudit(ctx, tx, a.SignedUp(method))
}

// lockAccount blocks other changes to the account until the transaction ends, on both engines.
func lockAccount(ctx context.Context, tx *sql.Tx, accountID string) error {
	return mustChange(ctx, tx, account.ErrNotFound, "lock account",
		"UPDATE accounts SET state = state WHERE id = $1", accountID)
}

// InsertAccount returns account.ErrEmailTaken if the address is in use.
func (s *Store) InsertAccount(ctx context.Context, a account.Account) error {
	return s.write(ctx, func(tx *sql.Tx) error { return insertAccount(ctx, tx, a, account.ByPassword) })
}

// AccountByEmail returns account.ErrBadCredentials if no account has the address.
func (s *Store) AccountByEmail(ctx context.Context, email string) (account.Account, error) {
	return queryOne(ctx, s.reads, account.ErrBadCredentials, scanAccount, selectAccount+"WHERE a.email = $1", email)
}

// AccountByID returns account.ErrNotFound for an unknown ID.
func (s *Store) AccountByID(ctx context.Context, id string) (account.Account, error) {
	return queryOne(ctx, s.reads, account.ErrNotFound, scanAccount, selectAccount+"WHERE a.id = $1", id)
}

// SetActive suspends or restores the account of the entry, and reports whether its state changed.
func (s *Store) SetActive(ctx context.Context, active bool, e audit.Entry, t audit.Trace) (done bool, err error) {
	from, to := "active", "suspended"
	if active {
		from, to = to, from
	}
	err = s.write(ctx, func(tx *sql.Tx) error {
		done, err = changed(ctx, tx, "set account state", "UPDATE accounts SET state = $1 WHERE id = $2 AND state = $3",
			to, e.AccountID, from)
		if err != nil || !done {
			return err
		}
		if err := insertAudit(ctx, tx, e); err != nil {
			return err
		}
		return insertTrace(ctx, tx, t, "", "", e.AccountID)
	})
	return done, err
}

// SetPassword stores the password hash to for the entry's account, and ends all browser sessions except keepHash. It
// returns account.ErrBadCredentials if the stored hash does not equal from.
func (s *Store) SetPassword(ctx context.Context, from, to, keepHash string, e audit.Entry) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		err := mustChange(ctx, tx, account.ErrBadCredentials, "set password",
			"UPDATE accounts SET password_hash = $1 WHERE id = $2 AND password_hash = $3 AND state = 'active'",
			to, e.AccountID, from)
		if err != nil {
			return err
		}
		return execAll(ctx, tx, "set password",
			stmt("DELETE FROM web_sessions WHERE account_id = $1 AND hash <> $2", e.AccountID, keepHash),
			stmt("DELETE FROM mail_tokens WHERE account_id = $1 AND purpose = 'reset'", e.AccountID),
			auditStatement(e))
	})
}

// InsertWebSession stores a browser session of an active account and deletes expired sessions.
func (s *Store) InsertWebSession(ctx context.Context, accountID string, b account.BrowserSession) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		err := execTx(ctx, tx, "delete expired browser sessions",
			"DELETE FROM web_sessions WHERE expires_at < $1", toMS(b.CreatedAt))
		if err != nil {
			return err
		}
		// A change of the password also locks the account and then ends all browser sessions. It therefore either ends
		// this session too, or the statement below sees the new password.
		if err := lockAccount(ctx, tx, accountID); err != nil && !errors.Is(err, account.ErrNotFound) {
			return err
		}
		inserted, err := changed(ctx, tx, "insert browser session", `INSERT INTO web_sessions
				(hash, account_id, created_at, expires_at, id, method, user_agent, ip, used_at, behind_proxy)
			SELECT $1, a.id, $2, $3, $4, $5, $6, $7, $8, $9 FROM accounts a
			WHERE a.id = $10 AND a.state = 'active' AND ($11 = '' OR a.password_hash = $11)`,
			b.Hash, toMS(b.CreatedAt), toMS(b.ExpiresAt), b.ID, b.Method, b.UserAgent, b.IP, toMS(b.UsedAt),
			boolInt(b.BehindProxy), accountID, b.PasswordHash)
		if err != nil {
			return err
		}
		if inserted {
			return insertAudit(ctx, tx, b.SignedIn(accountID))
		}
		active, err := hasRow(ctx, tx, "SELECT 1 FROM accounts WHERE id = $1 AND state = 'active'", accountID)
		return cmp.Or(require(active, err, account.ErrSuspended), account.ErrBadCredentials)
	})
}

// AccountByWebSession returns the account and the last use of a browser session, or account.ErrNoSession if the
// session is unknown or expired.
func (s *Store) AccountByWebSession(
	ctx context.Context, hash string, now time.Time,
) (account.Account, time.Time, error) {
	var used time.Time
	a, err := queryOne(ctx, s.reads, account.ErrNoSession, func(row scanner) (account.Account, error) {
		return scanAccountAnd(row, intoTime(&used))
	}, `SELECT `+accountColumns+`, w.used_at FROM web_sessions w JOIN accounts a ON a.id = w.account_id
		WHERE w.hash = $1 AND w.expires_at > $2`, hash, toMS(now))
	return a, used, err
}

// TouchWebSession records a use of a browser session.
func (s *Store) TouchWebSession(ctx context.Context, hash string, now time.Time) error {
	_, err := s.exec(ctx, "touch browser session",
		"UPDATE web_sessions SET used_at = $1 WHERE hash = $2 AND used_at < $1", toMS(now), hash)
	return err
}

// DeleteWebSession deletes a browser session and inserts the entry for its account. It returns the ID of that account,
// or "" if the session is unknown.
func (s *Store) DeleteWebSession(ctx context.Context, hash string, e audit.Entry) (accountID string, err error) {
	err = s.write(ctx, func(tx *sql.Tx) error {
		accountID, err = queryValue[string](ctx, tx, "DELETE FROM web_sessions WHERE hash = $1 RETURNING account_id", hash)
		if err != nil {
			return replaceNoRows(err, nil)
		}
		e.AccountID = accountID
		return insertAudit(ctx, tx, e)
	})
	return accountID, err
}

// EndAllWebSessions ends all browser sessions of all accounts, and returns their number.
func (s *Store) EndAllWebSessions(ctx context.Context) (int, error) {
	var n int64
	err := s.write(ctx, func(tx *sql.Tx) (err error) {
		n, err = execCount(ctx, tx, "delete browser sessions", "DELETE FROM web_sessions")
		return err
	})
	return int(n), err
}

// WebSessions lists the account's browser sessions, most recently used first.
func (s *Store) WebSessions(ctx context.Context, accountID string, now time.Time) ([]account.BrowserSession, error) {
	return queryAll(ctx, s.reads, func(row scanner) (b account.BrowserSession, err error) {
		err = row.Scan(&b.ID, &b.Method, &b.UserAgent, &b.IP, intoTime(&b.CreatedAt), intoTime(&b.UsedAt),
			intoTime(&b.ExpiresAt), &b.Hash)
		return b, err
	}, `SELECT id, method, user_agent, ip, created_at, used_at, expires_at, hash FROM web_sessions
		WHERE account_id = $1 AND expires_at > $2 ORDER BY used_at DESC, id`, accountID, toMS(now))
}

// EndWebSessions ends one browser session of the entry's account, or all except keepHash if id is "". It returns the
// number of ended sessions.
func (s *Store) EndWebSessions(ctx context.Context, id, keepHash string, e audit.Entry) (int, error) {
	var n int64
	err := s.write(ctx, func(tx *sql.Tx) (err error) {
		n, err = execCount(ctx, tx, "delete browser sessions",
			"DELETE FROM web_sessions WHERE account_id = $1 AND hash <> $2 AND ($3 = '' OR id = $3)", e.AccountID, keepHash, id)
		if err != nil || n == 0 {
			return err
		}
		return insertAudit(ctx, tx, e)
	})
	return int(n), err
}
