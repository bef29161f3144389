package link

import (
	"context"
	"database/sql"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/db"
)

// Store stores device codes and links. Every method is atomic.
type Store struct{ *db.DB }

// NewStore returns a store in d.
func NewStore(d *db.DB) *Store { return &Store{d} }

const codeColumns = `device_hash, user_hash, state, account_id, host, os, client, ip, created_at, expires_at,
	interval_ms`

// progressQuery is the most frequent query, because waiting clients only poll.
const progressQuery = "SELECT state, expires_at, interval_ms FROM device_codes WHERE device_hash = $1"

// Progress returns all fields that a poll of a pending code needs. It returns ErrUnknown for an unknown code.
func (s *Store) Progress(ctx context.Context, deviceHash string) (p Progress, err error) {
	err = s.QueryPrepared(ctx, progressQuery, deviceHash).
		Scan(&p.State, db.IntoTime(&p.ExpiresAt), db.IntoDuration(&p.Interval))
	if err != nil {
		return Progress{}, db.ReplaceNoRows(err, ErrUnknown)
	}
	return p, nil
}

// CodeByUser returns ErrUnknown for an unknown code.
func (s *Store) CodeByUser(ctx context.Context, userHash string) (Code, error) {
	return db.One(ctx, s, ErrUnknown, func(row db.Row) (c Code, err error) {
		err = row.Scan(&c.DeviceHash, &c.UserHash, &c.State, db.IntoText(&c.AccountID),
			&c.Requester.Host, &c.Requester.OS, &c.Requester.Client, &c.Requester.IP,
			db.IntoTime(&c.CreatedAt), db.IntoTime(&c.ExpiresAt), db.IntoDuration(&c.Interval))
		return c, err
	}, "SELECT "+codeColumns+" FROM device_codes WHERE user_hash = $1", userHash)
}

// Decide changes the state of a code that is pending and not expired at now. It reports whether it changed the
// state.
func (s *Store) Decide(
	ctx context.Context, userHash string, to State, accountID string, now time.Time, t audit.Trace,
) (done bool, err error) {
	err = s.Write(ctx, func(tx *sql.Tx) error {
		done, err = db.Changed(ctx, tx, "decide code", `UPDATE device_codes SET state = $1, account_id = $2
			WHERE user_hash = $3 AND state = 'pending' AND expires_at > $4`,
			to, sql.NullString{String: accountID, Valid: accountID != ""}, userHash, db.ToMS(now))
		if err != nil || !done {
			return err
		}
		return audit.InsertTrace(ctx, tx, t, userHash, "", accountID)
	})
	return done, err
}

// Cancel denies a code that is pending or approved, or revokes the unused link of a redeemed code. It first denies
// the code, which waits for a concurrent redemption and makes the resulting link visible. A code that is already
// cancelled does not change. Cancel returns ErrUnknown for a code that does not exist or whose token is in use.
func (s *Store) Cancel(ctx context.Context, deviceHash string, now time.Time, t audit.Trace) error {
	return s.Write(ctx, func(tx *sql.Tx) error {
		denied, err := db.All(ctx, tx, scanOwnedRef, `UPDATE device_codes SET state = 'denied' WHERE device_hash = $1
			AND state IN ('pending', 'approved') RETURNING user_hash, account_id`, deviceHash)
		if err != nil {
			return err
		}
		if len(denied) > 0 {
			return audit.InsertTrace(ctx, tx, t, denied[0].ref, "", denied[0].accountID)
		}
		revoked, err := db.All(ctx, tx, scanOwnedRef, `UPDATE links SET revoked_at = $1
			WHERE used_at IS NULL AND revoked_at IS NULL
				AND id = (SELECT link_id FROM device_codes WHERE device_hash = $2 AND state = 'redeemed')
			RETURNING id, account_id`, db.ToMS(now), deviceHash)
		if err != nil {
			return err
		}
		if len(revoked) > 0 {
			t.Action = audit.TrailRevoke
			return traceLinks(ctx, tx, t, revoked)
		}
		cancelled, err := db.Exists(ctx, tx, `SELECT 1 FROM device_codes WHERE device_hash = $1 AND (state = 'denied'
			OR state = 'redeemed' AND EXISTS (SELECT 1 FROM links WHERE links.id = device_codes.link_id
				AND links.used_at IS NULL AND links.revoked_at IS NOT NULL))`, deviceHash)
		if err == nil && !cancelled {
			err = ErrUnknown
		}
		return err
	})
}

// RaiseInterval stores a longer polling interval for a pending code.
func (s *Store) RaiseInterval(ctx context.Context, deviceHash string, interval time.Duration) error {
	_, err := s.Exec(ctx, "raise interval",
		"UPDATE device_codes SET interval_ms = $1 WHERE device_hash = $2 AND interval_ms < $1",
		interval.Milliseconds(), deviceHash)
	return err
}

// Redeem deletes an approved code and inserts its link with the code's account and requester, in one transaction. The
// code must expire at or after deadline, and its account must be active. Redeem also writes the link's audit entry.
// It returns the complete link, or ErrUnknown if there is no such code.
func (s *Store) Redeem(
	ctx context.Context, deviceHash string, deadline time.Time, l Link, t audit.Trace,
) (Link, error) {
	err := s.Write(ctx, func(tx *sql.Tx) error {
		var userHash string
		who := &l.Requester
		err := tx.QueryRowContext(ctx, `UPDATE device_codes SET state = 'redeemed'
			WHERE device_hash = $1 AND state = 'approved' AND expires_at >= $2 AND EXISTS
				(SELECT 1 FROM accounts a WHERE a.id = device_codes.account_id AND a.state = 'active')
			RETURNING user_hash, account_id, host, os, client, ip`, deviceHash, db.ToMS(deadline)).
			Scan(&userHash, &l.AccountID, &who.Host, &who.OS, &who.Client, &who.IP)
		if err != nil {
			return db.ReplaceNoRows(err, ErrUnknown)
		}
		err = db.ExecAll(ctx, tx, "redeem code",
			db.Stmt(`INSERT INTO links (id, account_id, token_hash, host, os, client, ip, linked_at, expires_at)
				VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
				l.ID, l.AccountID, l.TokenHash, who.Host, who.OS, who.Client, who.IP, db.ToMS(l.LinkedAt),
				db.TimeOrNull(l.ExpiresAt)),
			db.Stmt("UPDATE device_codes SET link_id = $1 WHERE device_hash = $2", l.ID, deviceHash))
		if err != nil {
			return err
		}
		if err := audit.Insert(ctx, tx, l.Created()); err != nil {
			return err
		}
		return audit.InsertTrace(ctx, tx, t, userHash, l.ID, l.AccountID)
	})
	return l, err
}

// MarkRepolled records the first poll of a code after its redemption.
func (s *Store) MarkRepolled(ctx context.Context, deviceHash string, now time.Time) error {
	_, err := s.Exec(ctx, "mark code repolled", `UPDATE device_codes SET repolled_at = $1
		WHERE device_hash = $2 AND state = 'redeemed' AND repolled_at IS NULL`, db.ToMS(now), deviceHash)
	return err
}

// MarkUsed records a use of a token with the caller's address, which may be empty. It returns ErrRevoked if the
// link was revoked after it was read, so that a first use and the sweep of unused tokens never both succeed.
func (s *Store) MarkUsed(ctx context.Context, linkID, ip string, now time.Time) error {
	return s.Write(ctx, func(tx *sql.Tx) error {
		return db.MustChange(ctx, tx, ErrRevoked, "touch link", `UPDATE links
			SET used_at = COALESCE(used_at, $1), last_used_at = $1, last_ip = CASE WHEN $2 = '' THEN last_ip ELSE $2 END
			WHERE id = $3 AND revoked_at IS NULL`, db.ToMS(now), ip, linkID)
	})
}

// Sweep revokes unused tokens whose code was polled again before repolled, and deletes codes that expired before
// expired. It also removes deleted data from the journal. It returns the number of revoked tokens.
func (s *Store) Sweep(ctx context.Context, now, repolled, expired time.Time, t audit.Trace) (int64, error) {
	var revoked []ownedRef
	err := s.Write(ctx, func(tx *sql.Tx) (err error) {
		revoked, err = db.All(ctx, tx, scanOwnedRef, `UPDATE links SET revoked_at = $1
			WHERE used_at IS NULL AND revoked_at IS NULL
				AND id IN (SELECT link_id FROM device_codes WHERE repolled_at < $2)
			RETURNING id, account_id`, db.ToMS(now), db.ToMS(repolled))
		if err != nil {
			return err
		}
		if err := traceLinks(ctx, tx, t, revoked); err != nil {
			return err
		}
		return db.Exec(ctx, tx, "delete expired codes", "DELETE FROM device_codes WHERE expires_at < $1", db.ToMS(expired))
	})
	if err == nil {
		_ = s.TruncateJournal(ctx) // the next sweep tries again; a full disk makes writes fail too
	}
	return int64(len(revoked)), err
}

// PendingCodes counts the codes that can still be approved, and the approved codes that are not yet redeemed.
func (s *Store) PendingCodes(ctx context.Context, now time.Time) (int, error) {
	return db.QueryValue[int](ctx, s,
		"SELECT COUNT(*) FROM device_codes WHERE state IN ('pending', 'approved') AND expires_at > $1", db.ToMS(now))
}

const (
	selectLinks = `SELECT l.id, l.account_id, l.host, l.os, l.client, l.ip, l.linked_at, l.expires_at,
			l.used_at, l.last_used_at, l.last_ip, l.revoked_at, a.state = 'active'
		FROM links l JOIN accounts a ON a.id = l.account_id WHERE `
	lastUsedFirst = ` ORDER BY COALESCE(l.last_used_at, l.linked_at) DESC, l.id`
)

func scanLink(row db.Row) (l Link, err error) {
	who := &l.Requester
	err = row.Scan(&l.ID, &l.AccountID, &who.Host, &who.OS, &who.Client, &who.IP, db.IntoTime(&l.LinkedAt),
		db.IntoTime(&l.ExpiresAt), db.IntoTime(&l.UsedAt), db.IntoTime(&l.LastUsedAt), &l.LastIP, db.IntoTime(&l.RevokedAt),
		&l.Active)
	return l, err
}

// LinkByToken returns ErrUnknown for an unknown token.
func (s *Store) LinkByToken(ctx context.Context, tokenHash string) (Link, error) {
	l, err := db.One(ctx, s, ErrUnknown, scanLink, selectLinks+"l.token_hash = $1", tokenHash)
	if err == nil {
		l.TokenHash = tokenHash
	}
	return l, err
}

// AnyLink returns a link by its ID, even if it is revoked. It returns ErrUnknown for an unknown ID.
func (s *Store) AnyLink(ctx context.Context, linkID string) (Link, error) {
	return db.One(ctx, s, ErrUnknown, scanLink, selectLinks+"l.id = $1", linkID)
}

// AccountLinks lists the links that are not revoked, most recently used first.
func (s *Store) AccountLinks(ctx context.Context, accountID string) ([]Link, error) {
	return db.All(ctx, s, scanLink,
		selectLinks+"l.account_id = $1 AND l.revoked_at IS NULL"+lastUsedFirst, accountID)
}

// AllLinks lists every link of an account, including revoked links, most recently used first.
func (s *Store) AllLinks(ctx context.Context, accountID string) ([]Link, error) {
	return db.All(ctx, s, scanLink, selectLinks+"l.account_id = $1"+lastUsedFirst, accountID)
}

// RevokeLinks revokes the active link linkID of the entry's account, or all of the account's links if linkID is
// empty. It returns the number of revoked links, and writes the entry if that is not 0.
func (s *Store) RevokeLinks(
	ctx context.Context, linkID string, now time.Time, e audit.Entry, t audit.Trace,
) (n int, err error) {
	err = s.Write(ctx, func(tx *sql.Tx) error {
		if n, err = Revoke(ctx, tx, e.AccountID, linkID, now, t); err != nil || n == 0 {
			return err
		}
		return audit.Insert(ctx, tx, e)
	})
	return n, err
}

// Revoke revokes the account's link with this ID, or all links if linkID is "". In the latter case it first denies
// the approved codes that are not yet redeemed, because they would become links. Denying them waits for a concurrent
// redemption and makes the resulting link visible.
func Revoke(
	ctx context.Context, tx *sql.Tx, accountID, linkID string, now time.Time, t audit.Trace,
) (int, error) {
	if linkID == "" {
		codes, err := db.All(ctx, tx, scanOwnedRef, `UPDATE device_codes SET state = 'denied'
			WHERE account_id = $1 AND state = 'approved' RETURNING user_hash, account_id`, accountID)
		if err != nil {
			return 0, err
		}
		deny := t
		deny.Action = audit.TrailDeny
		for _, c := range codes {
			if err := audit.InsertTrace(ctx, tx, deny, c.ref, "", c.accountID); err != nil {
				return 0, err
			}
		}
	}
	links, err := db.All(ctx, tx, scanOwnedRef, `UPDATE links SET revoked_at = $1
		WHERE account_id = $2 AND revoked_at IS NULL AND ($3 = '' OR id = $3) RETURNING id, account_id`,
		db.ToMS(now), accountID, linkID)
	if err != nil {
		return 0, err
	}
	return len(links), traceLinks(ctx, tx, t, links)
}

// ownedRef identifies a link or code that a statement changed, and the account that owns it.
type ownedRef struct{ ref, accountID string }

func scanOwnedRef(row db.Row) (r ownedRef, err error) {
	err = row.Scan(&r.ref, db.IntoText(&r.accountID))
	return r, err
}

// traceLinks inserts a trail line for each link.
func traceLinks(ctx context.Context, tx *sql.Tx, t audit.Trace, links []ownedRef) error {
	for _, l := range links {
		if err := audit.InsertTrace(ctx, tx, t, "", l.ref, l.accountID); err != nil {
			return err
		}
	}
	return nil
}
