package account

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/db"
)

// Store stores accounts and their ways to sign in. Every method is atomic.
type Store struct{ *db.DB }

// NewStore returns a store in d.
func NewStore(d *db.DB) *Store { return &Store{d} }

const (
	accountColumns = `a.id, a.email, a.password_hash, a.state = 'active', a.privacy_accepted_at, a.created_at,
		a.verified_at`
	selectAccount = `SELECT ` + accountColumns + ` FROM accounts a `
)

func scanAccount(row db.Row) (Account, error) { return scanAccountAnd(row) }

// scanAccountAnd scans accountColumns and the columns after them.
func scanAccountAnd(row db.Row, more ...any) (a Account, err error) {
	err = row.Scan(append([]any{&a.ID, &a.Email, &a.PasswordHash, &a.Active, db.IntoTime(&a.PrivacyAccepted),
		db.IntoTime(&a.CreatedAt), db.IntoTime(&a.VerifiedAt)}, more...)...)
	return a, err
}

// insertAccount inserts an account and the audit entry for its sign-up with the method.
func insertAccount(ctx context.Context, tx *sql.Tx, a Account, method string) error {
	err := db.Exec(ctx, tx, "insert account", `INSERT INTO accounts
		(id, email, password_hash, state, privacy_accepted_at, created_at, verified_at)
		VALUES ($1, $2, $3, 'active', $4, $5, $6)`,
		a.ID, a.Email, a.PasswordHash, db.ToMS(a.PrivacyAccepted), db.ToMS(a.CreatedAt), db.TimeOrNull(a.VerifiedAt))
	if db.IsDuplicate(err) {
		return ErrEmailTaken
	}
	if err != nil {
		return err
	}
	return audit.Insert(ctx, tx, a.SignedUp(method))
}

// lockAccount locks the account, or returns ErrNotFound.
func lockAccount(ctx context.Context, tx *sql.Tx, accountID string) error {
	found, err := db.LockAccount(ctx, tx, accountID)
	return db.Require(found, err, ErrNotFound)
}

// InsertAccount also writes the account's audit entry. It returns ErrEmailTaken if the address has an account.
func (s *Store) InsertAccount(ctx context.Context, a Account) error {
	return s.Write(ctx, func(tx *sql.Tx) error { return insertAccount(ctx, tx, a, ByPassword) })
}

// AccountByEmail returns ErrBadCredentials if no account has the address.
func (s *Store) AccountByEmail(ctx context.Context, email string) (Account, error) {
	return db.One(ctx, s, ErrBadCredentials, scanAccount, selectAccount+"WHERE a.email = $1", email)
}

// AccountByID returns ErrNotFound for an unknown ID.
func (s *Store) AccountByID(ctx context.Context, id string) (Account, error) {
	return db.One(ctx, s, ErrNotFound, scanAccount, selectAccount+"WHERE a.id = $1", id)
}

// SetActive suspends or restores the account of the entry and writes the entry. It reports whether the account's
// state changed.
func (s *Store) SetActive(ctx context.Context, active bool, e audit.Entry, t audit.Trace) (done bool, err error) {
	from, to := "active", "suspended"
	if active {
		from, to = to, from
	}
	err = s.Write(ctx, func(tx *sql.Tx) error {
		done, err = db.Changed(ctx, tx, "set account state", "UPDATE accounts SET state = $1 WHERE id = $2 AND state = $3",
			to, e.AccountID, from)
		if err != nil || !done {
			return err
		}
		if err := audit.Insert(ctx, tx, e); err != nil {
			return err
		}
		return audit.InsertTrace(ctx, tx, t, "", "", e.AccountID)
	})
	return done, err
}

// SetPassword replaces the password hash from with to. It deletes all mailed links that set a password and every
// browser session except keepHash. It returns ErrBadCredentials if the stored hash no longer equals from.
func (s *Store) SetPassword(ctx context.Context, from, to, keepHash string, e audit.Entry) error {
	return s.Write(ctx, func(tx *sql.Tx) error {
		err := db.MustChange(ctx, tx, ErrBadCredentials, "set password",
			"UPDATE accounts SET password_hash = $1 WHERE id = $2 AND password_hash = $3 AND state = 'active'",
			to, e.AccountID, from)
		if err != nil {
			return err
		}
		return db.ExecAll(ctx, tx, "set password",
			db.Stmt("DELETE FROM web_sessions WHERE account_id = $1 AND hash <> $2", e.AccountID, keepHash),
			db.Stmt("DELETE FROM mail_tokens WHERE account_id = $1 AND purpose = 'reset'", e.AccountID),
			audit.Statement(e))
	})
}

// InsertWebSession stores a session of the account and writes its audit entry. It returns ErrSuspended if the
// account is not active, and ErrBadCredentials if the password has changed since the visit.
func (s *Store) InsertWebSession(ctx context.Context, accountID string, b BrowserSession) error {
	return s.Write(ctx, func(tx *sql.Tx) error {
		err := db.Exec(ctx, tx, "delete expired browser sessions",
			"DELETE FROM web_sessions WHERE expires_at < $1", db.ToMS(b.CreatedAt))
		if err != nil {
			return err
		}
		// A password change also locks the account and then ends all browser sessions. So it either ends this session
		// too, or the statement below sees the new password.
		if err := lockAccount(ctx, tx, accountID); err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		inserted, err := db.Changed(ctx, tx, "insert browser session", `INSERT INTO web_sessions
				(hash, account_id, created_at, expires_at, id, method, user_agent, ip, used_at, behind_proxy)
			SELECT $1, a.id, $2, $3, $4, $5, $6, $7, $8, $9 FROM accounts a
			WHERE a.id = $10 AND a.state = 'active' AND ($11 = '' OR a.password_hash = $11)`,
			b.Hash, db.ToMS(b.CreatedAt), db.ToMS(b.ExpiresAt), b.ID, b.Method, b.UserAgent, b.IP, db.ToMS(b.UsedAt),
			db.BoolInt(b.BehindProxy), accountID, b.PasswordHash)
		if err != nil {
			return err
		}
		if inserted {
			return audit.Insert(ctx, tx, b.SignedIn(accountID))
		}
		active, err := db.Exists(ctx, tx, "SELECT 1 FROM accounts WHERE id = $1 AND state = 'active'", accountID)
		return cmp.Or(db.Require(active, err, ErrSuspended), ErrBadCredentials)
	})
}

// AccountByWebSession returns the account and the last use of a browser session, or ErrNoSession if the
// session is unknown or expired.
func (s *Store) AccountByWebSession(
	ctx context.Context, hash string, now time.Time,
) (Account, time.Time, error) {
	var used time.Time
	a, err := db.One(ctx, s, ErrNoSession, func(row db.Row) (Account, error) {
		return scanAccountAnd(row, db.IntoTime(&used))
	}, `SELECT `+accountColumns+`, w.used_at FROM web_sessions w JOIN accounts a ON a.id = w.account_id
		WHERE w.hash = $1 AND w.expires_at > $2`, hash, db.ToMS(now))
	return a, used, err
}

// TouchWebSession records a use of a browser session.
func (s *Store) TouchWebSession(ctx context.Context, hash string, now time.Time) error {
	_, err := s.Exec(ctx, "touch browser session",
		"UPDATE web_sessions SET used_at = $1 WHERE hash = $2 AND used_at < $1", db.ToMS(now), hash)
	return err
}

// DeleteWebSession deletes a browser session and inserts e for its account. It returns the ID of that account, or ""
// if the session is unknown.
func (s *Store) DeleteWebSession(ctx context.Context, hash string, e audit.Entry) (accountID string, err error) {
	err = s.Write(ctx, func(tx *sql.Tx) error {
		accountID, err = db.QueryValue[string](ctx, tx, "DELETE FROM web_sessions WHERE hash = $1 RETURNING account_id", hash)
		if err != nil {
			return db.ReplaceNoRows(err, nil)
		}
		e.AccountID = accountID
		return audit.Insert(ctx, tx, e)
	})
	return accountID, err
}

// EndAllWebSessions ends all browser sessions of all accounts, and returns their number.
func (s *Store) EndAllWebSessions(ctx context.Context) (int, error) {
	var n int64
	err := s.Write(ctx, func(tx *sql.Tx) (err error) {
		n, err = db.ExecCount(ctx, tx, "delete browser sessions", "DELETE FROM web_sessions")
		return err
	})
	return int(n), err
}

// WebSessions lists the sessions that have not expired, most recently used first.
func (s *Store) WebSessions(ctx context.Context, accountID string, now time.Time) ([]BrowserSession, error) {
	return db.All(ctx, s, func(row db.Row) (b BrowserSession, err error) {
		err = row.Scan(&b.ID, &b.Method, &b.UserAgent, &b.IP, db.IntoTime(&b.CreatedAt), db.IntoTime(&b.UsedAt),
			db.IntoTime(&b.ExpiresAt), &b.Hash)
		return b, err
	}, `SELECT id, method, user_agent, ip, created_at, used_at, expires_at, hash FROM web_sessions
		WHERE account_id = $1 AND expires_at > $2 ORDER BY used_at DESC, id`, accountID, db.ToMS(now))
}

// EndWebSessions ends the session with this ID, or every session except keepHash if id is empty. It returns the
// number of sessions ended and, unless that is 0, writes the entry.
func (s *Store) EndWebSessions(ctx context.Context, id, keepHash string, e audit.Entry) (int, error) {
	var n int64
	err := s.Write(ctx, func(tx *sql.Tx) (err error) {
		n, err = db.ExecCount(ctx, tx, "delete browser sessions",
			"DELETE FROM web_sessions WHERE account_id = $1 AND hash <> $2 AND ($3 = '' OR id = $3)", e.AccountID, keepHash, id)
		if err != nil || n == 0 {
			return err
		}
		return audit.Insert(ctx, tx, e)
	})
	return int(n), err
}

// AccountByIdentity returns the account of an identity and records the use, or returns ErrNotFound.
func (s *Store) AccountByIdentity(
	ctx context.Context, provider, subject string, now time.Time,
) (Account, error) {
	a, err := db.One(ctx, s, ErrNotFound, scanAccount, "SELECT "+accountColumns+` FROM identities i
		JOIN accounts a ON a.id = i.account_id WHERE i.provider = $1 AND i.subject = $2`, provider, subject)
	if err != nil {
		return Account{}, err
	}
	_, err = s.Exec(ctx, "touch identity", "UPDATE identities SET used_at = $1 WHERE provider = $2 AND subject = $3",
		db.ToMS(now), provider, subject)
	return a, err
}

func insertIdentity(ctx context.Context, tx *sql.Tx, accountID string, id LinkedIdentity) (bool, error) {
	return db.Changed(ctx, tx, "insert identity", `INSERT INTO identities
			(provider, subject, account_id, email, linked_at, used_at)
		VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (provider, subject) DO NOTHING`,
		id.Provider, id.Subject, accountID, id.Email, db.ToMS(id.LinkedAt), db.ToMS(id.UsedAt))
}

// InsertIdentity adds an identity to the entry's account. It returns false if the account already has the identity,
// and ErrIdentityTaken if another account has it.
func (s *Store) InsertIdentity(
	ctx context.Context, id LinkedIdentity, e audit.Entry,
) (inserted bool, err error) {
	err = s.Write(ctx, func(tx *sql.Tx) error {
		if inserted, err = insertIdentity(ctx, tx, e.AccountID, id); err != nil {
			return err
		}
		if inserted {
			return audit.Insert(ctx, tx, e)
		}
		owner, err := db.QueryValue[string](ctx, tx, "SELECT account_id FROM identities WHERE provider = $1 AND subject = $2",
			id.Provider, id.Subject)
		if err == nil && owner != e.AccountID {
			return ErrIdentityTaken
		}
		return err
	})
	return inserted, err
}

// InsertAccountWith inserts an account and its identity, and writes the account's audit entry. It returns
// ErrEmailTaken or ErrIdentityTaken.
func (s *Store) InsertAccountWith(ctx context.Context, a Account, id LinkedIdentity) error {
	return s.Write(ctx, func(tx *sql.Tx) error {
		if err := insertAccount(ctx, tx, a, ByOIDC+id.Provider); err != nil {
			return err
		}
		inserted, err := insertIdentity(ctx, tx, a.ID, id)
		return db.Require(inserted, err, ErrIdentityTaken)
	})
}

// Identities lists the identities that can sign in to the account, in the order they were linked.
func (s *Store) Identities(ctx context.Context, accountID string) ([]LinkedIdentity, error) {
	return db.All(ctx, s, func(row db.Row) (id LinkedIdentity, err error) {
		err = row.Scan(&id.Provider, &id.Subject, &id.Email, db.IntoTime(&id.LinkedAt), db.IntoTime(&id.UsedAt))
		return id, err
	}, `SELECT provider, subject, email, linked_at, used_at FROM identities
		WHERE account_id = $1 ORDER BY linked_at, provider, subject`, accountID)
}

// DeleteIdentity also ends the browser sessions that the provider opened, except keepHash. It returns
// ErrNotFound if the account does not have the identity, or ErrLastWayIn if no other way to sign in is
// left.
func (s *Store) DeleteIdentity(ctx context.Context, provider, subject, keepHash string, e audit.Entry) error {
	return DeleteWayIn(ctx, s.DB, e, ErrLastWayIn, func(tx *sql.Tx) error {
		if err := db.MustChange(ctx, tx, ErrNotFound, "delete identity",
			"DELETE FROM identities WHERE provider = $1 AND subject = $2 AND account_id = $3", provider, subject,
			e.AccountID); err != nil {
			return err
		}
		_, err := db.ExecCount(ctx, tx, "end the provider's browser sessions",
			"DELETE FROM web_sessions WHERE account_id = $1 AND method = $2 AND hash <> $3", e.AccountID,
			ByOIDC+provider, keepHash)
		return err
	})
}

// DeleteWayIn locks the entry's account, runs remove and writes the entry. If no way to sign in to the account is left
// afterwards, it fails with the error last.
func DeleteWayIn(
	ctx context.Context, d *db.DB, e audit.Entry, last error, remove func(tx *sql.Tx) error,
) error {
	return d.Write(ctx, func(tx *sql.Tx) error {
		if err := lockAccount(ctx, tx, e.AccountID); err != nil {
			return err
		}
		if err := remove(tx); err != nil {
			return err
		}
		left, err := db.QueryValue[int](ctx, tx, `SELECT (SELECT COUNT(*) FROM identities WHERE account_id = $1)
			+ (SELECT COUNT(*) FROM passkeys WHERE account_id = $1)
			+ (SELECT COUNT(*) FROM accounts WHERE id = $1 AND password_hash <> '')`, e.AccountID)
		switch {
		case err != nil:
			return err
		case left == 0:
			return last
		}
		return audit.Insert(ctx, tx, e)
	})
}

// AccountOverviews returns the first limit accounts, oldest first. If email is not empty, it returns only the account
// with that stored address.
func (s *Store) AccountOverviews(ctx context.Context, email string, limit int) ([]Overview, error) {
	return db.All(ctx, s, func(row db.Row) (o Overview, err error) {
		err = row.Scan(&o.ID, &o.Email, &o.Links, &o.Passkeys)
		return o, err
	}, `SELECT a.id, a.email,
			(SELECT COUNT(*) FROM links l WHERE l.account_id = a.id AND l.revoked_at IS NULL),
			(SELECT COUNT(*) FROM passkeys p WHERE p.account_id = a.id)
		FROM accounts a WHERE $1 = '' OR a.email = $1 ORDER BY a.created_at, a.id LIMIT $2`, email, limit)
}

// ReplacePassword sets the password of the entry's account, ends its browser sessions and mailed links, and revokes the
// access selected by revoke. Unlike ResetPassword, it does not prove who owns the e-mail address, so it keeps all other
// access even if the address is not verified. It returns ErrSuspended if the account is not active.
func (s *Store) ReplacePassword(
	ctx context.Context, passwordHash string, revoke Access, now time.Time, e audit.Entry, tr audit.Trace,
) (ended Ended, err error) {
	err = s.Write(ctx, func(tx *sql.Tx) error {
		err := db.MustChange(ctx, tx, ErrSuspended, "replace password",
			"UPDATE accounts SET password_hash = $1 WHERE id = $2 AND state = 'active'", passwordHash, e.AccountID)
		if err != nil {
			return err
		}
		if ended, err = countAccess(ctx, tx, e.AccountID, revoke, now); err != nil {
			return err
		}
		if err := revokeAccess(ctx, tx, e.AccountID, revoke, now, tr); err != nil {
			return err
		}
		return db.ExecAll(ctx, tx, "replace password",
			db.Stmt("DELETE FROM web_sessions WHERE account_id = $1", e.AccountID),
			db.Stmt("DELETE FROM mail_tokens WHERE account_id = $1", e.AccountID),
			audit.Statement(e))
	})
	return ended, err
}

// countAccess counts the browser sessions of an account, and the links and passkeys that revoke selects.
func countAccess(
	ctx context.Context, tx *sql.Tx, accountID string, revoke Access, now time.Time,
) (n Ended, err error) {
	n.Browsers, err = db.QueryValue[int](ctx, tx,
		"SELECT COUNT(*) FROM web_sessions WHERE account_id = $1 AND expires_at > $2", accountID, db.ToMS(now))
	if err == nil && revoke.Links {
		n.Links, err = db.QueryValue[int](ctx, tx,
			"SELECT COUNT(*) FROM links WHERE account_id = $1 AND revoked_at IS NULL", accountID)
	}
	if err == nil && revoke.Passkeys {
		n.Passkeys, err = db.QueryValue[int](ctx, tx, "SELECT COUNT(*) FROM passkeys WHERE account_id = $1", accountID)
	}
	return n, err
}
