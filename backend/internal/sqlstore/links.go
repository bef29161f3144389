package sqlstore

import (
	"context"
	"database/sql"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/link"
)

const codeColumns = `device_hash, user_hash, state, account_id, host, os, client, ip, created_at, expires_at,
	interval_ms`

// progressQuery is the most frequent query, because waiting clients only poll.
const progressQuery = "SELECT state, expires_at, interval_ms FROM device_codes WHERE device_hash = $1"

// Progress returns link.ErrUnknown for an unknown code.
func (s *Store) Progress(ctx context.Context, deviceHash string) (p link.Progress, err error) {
	err = s.pointQuery(ctx, progressQuery, deviceHash).
		Scan(&p.State, intoTime(&p.ExpiresAt), intoDuration(&p.Interval))
	if err != nil {
		return link.Progress{}, replaceNoRows(err, link.ErrUnknown)
	}
	return p, nil
}

// CodeByUser returns link.ErrUnknown for an unknown code.
func (s *Store) CodeByUser(ctx context.Context, userHash string) (link.Code, error) {
	return queryOne(ctx, s.reads, link.ErrUnknown, func(row scanner) (c link.Code, err error) {
		err = row.Scan(&c.DeviceHash, &c.UserHash, &c.State, intoText(&c.AccountID),
			&c.Requester.Host, &c.Requester.OS, &c.Requester.Client, &c.Requester.IP,
			intoTime(&c.CreatedAt), intoTime(&c.ExpiresAt), intoDuration(&c.Interval))
		return c, err
	}, "SELECT "+codeColumns+" FROM device_codes WHERE user_hash = $1", userHash)
}

// Decide changes the state of a code that is pending and has not expired, and reports whether it did so.
func (s *Store) Decide(
	ctx context.Context, userHash string, to link.State, accountID string, now time.Time, t audit.Trace,
) (done bool, err error) {
	err = s.write(ctx, func(tx *sql.Tx) error {
		done, err = changed(ctx, tx, "decide code", `UPDATE device_codes SET state = $1, account_id = $2
			WHERE user_hash = $3 AND state = 'pending' AND expires_at > $4`,
			to, sql.NullString{String: accountID, Valid: accountID != ""}, userHash, toMS(now))
		if err != nil || !done {
			return err
		}
		return insertTrace(ctx, tx, t, userHash, "", accountID)
	})
	return done, err
}

// Cancel denies a code that is pending or approved, or revokes the unused link of a redeemed code. It denies first,
// which waits for a concurrent redemption and makes its link visible. A code that is already cancelled does not change.
// Cancel returns link.ErrUnknown for a code that does not exist or whose token is in use.
func (s *Store) Cancel(ctx context.Context, deviceHash string, now time.Time, t audit.Trace) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		denied, err := queryAll(ctx, tx, scanOwnedRef, `UPDATE device_codes SET state = 'denied' WHERE device_hash = $1
			AND state IN ('pending', 'approved') RETURNING user_hash, account_id`, deviceHash)
		if err != nil {
			return err
		}
		if len(denied) > 0 {
			return insertTrace(ctx, tx, t, denied[0].ref, "", denied[0].accountID)
		}
		revoked, err := queryAll(ctx, tx, scanOwnedRef, `UPDATE links SET revoked_at = $1
			WHERE used_at IS NULL AND revoked_at IS NULL
				AND id = (SELECT link_id FROM device_codes WHERE device_hash = $2 AND state = 'redeemed')
			RETURNING id, account_id`, toMS(now), deviceHash)
		if err != nil {
			return err
		}
		if len(revoked) > 0 {
			t.Action = audit.TrailRevoke
			return traceLinks(ctx, tx, t, revoked)
		}
		cancelled, err := hasRow(ctx, tx, `SELECT 1 FROM device_codes WHERE device_hash = $1 AND (state = 'denied'
			OR state = 'redeemed' AND EXISTS (SELECT 1 FROM links WHERE links.id = device_codes.link_id
				AND links.used_at IS NULL AND links.revoked_at IS NOT NULL))`, deviceHash)
		if err == nil && !cancelled {
			err = link.ErrUnknown
		}
		return err
	})
}

// RaiseInterval stores a longer polling interval for a pending code.
func (s *Store) RaiseInterval(ctx context.Context, deviceHash string, interval time.Duration) error {
	_, err := s.exec(ctx, "raise interval",
		"UPDATE device_codes SET interval_ms = $1 WHERE device_hash = $2 AND interval_ms < $1",
		interval.Milliseconds(), deviceHash)
	return err
}

// Redeem uses up an approved code and inserts its link with an audit entry, or returns link.ErrUnknown.
func (s *Store) Redeem(
	ctx context.Context, deviceHash string, deadline time.Time, l link.Link, t audit.Trace,
) (link.Link, error) {
	err := s.write(ctx, func(tx *sql.Tx) error {
		var userHash string
		who := &l.Requester
		err := tx.QueryRowContext(ctx, `UPDATE device_codes SET state = 'redeemed'
			WHERE device_hash = $1 AND state = 'approved' AND expires_at >= $2 AND EXISTS
				(SELECT 1 FROM accounts a WHERE a.id = device_codes.account_id AND a.state = 'active')
			RETURNING user_hash, account_id, host, os, client, ip`, deviceHash, toMS(deadline)).
			Scan(&userHash, &l.AccountID, &who.Host, &who.OS, &who.Client, &who.IP)
		if err != nil {
			return replaceNoRows(err, link.ErrUnknown)
		}
		err = execAll(ctx, tx, "redeem code",
			stmt(`INSERT INTO links (id, account_id, token_hash, host, os, client, ip, linked_at, expires_at)
				VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
				l.ID, l.AccountID, l.TokenHash, who.Host, who.OS, who.Client, who.IP, toMS(l.LinkedAt), orNull(l.ExpiresAt)),
			stmt("UPDATE device_codes SET link_id = $1 WHERE device_hash = $2", l.ID, deviceHash))
		if err != nil {
			return err
		}
		if err := insertAudit(ctx, tx, l.Created()); err != nil {
			return err
		}
		return insertTrace(ctx, tx, t, userHash, l.ID, l.AccountID)
	})
	return l, err
}

// MarkRepolled records the first poll of a code after its redemption.
func (s *Store) MarkRepolled(ctx context.Context, deviceHash string, now time.Time) error {
	_, err := s.exec(ctx, "mark code repolled", `UPDATE device_codes SET repolled_at = $1
		WHERE device_hash = $2 AND state = 'redeemed' AND repolled_at IS NULL`, toMS(now), deviceHash)
	return err
}

// MarkUsed records the use of a token. If ip is empty, it keeps the stored address. It returns link.ErrRevoked if the
// link has been revoked since it was read.
func (s *Store) MarkUsed(ctx context.Context, linkID, ip string, now time.Time) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		return mustChange(ctx, tx, link.ErrRevoked, "touch link", `UPDATE links
			SET used_at = COALESCE(used_at, $1), last_used_at = $1, last_ip = CASE WHEN $2 = '' THEN last_ip ELSE $2 END
			WHERE id = $3 AND revoked_at IS NULL`, toMS(now), ip, linkID)
	})
}

// Sweep revokes unused tokens whose code was polled again before repolled, and deletes codes that expired before
// expired. It also removes deleted data from the journal. It returns the number of revoked tokens.
func (s *Store) Sweep(ctx context.Context, now, repolled, expired time.Time, t audit.Trace) (int64, error) {
	var revoked []ownedRef
	err := s.write(ctx, func(tx *sql.Tx) (err error) {
		revoked, err = queryAll(ctx, tx, scanOwnedRef, `UPDATE links SET revoked_at = $1
			WHERE used_at IS NULL AND revoked_at IS NULL
				AND id IN (SELECT link_id FROM device_codes WHERE repolled_at < $2)
			RETURNING id, account_id`, toMS(now), toMS(repolled))
		if err != nil {
			return err
		}
		if err := traceLinks(ctx, tx, t, revoked); err != nil {
			return err
		}
		return execTx(ctx, tx, "delete expired codes", "DELETE FROM device_codes WHERE expires_at < $1", toMS(expired))
	})
	if err == nil {
		_ = s.truncateJournal(ctx) // the next sweep tries again; a full disk makes writes fail too
	}
	return int64(len(revoked)), err
}

// PendingCodes counts the codes that can still be approved, and the approved codes that are not yet redeemed.
func (s *Store) PendingCodes(ctx context.Context, now time.Time) (int, error) {
	return queryValue[int](ctx, s.reads,
		"SELECT COUNT(*) FROM device_codes WHERE state IN ('pending', 'approved') AND expires_at > $1", toMS(now))
}
