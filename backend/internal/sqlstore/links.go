package sqlstore

import (
	"context"
	"database/sql"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/link"
)

const codeColumns = "device_hash, user_hash, state, account_id, host, os, client, ip, created_at, expires_at, interval_ms"

func scanCode(row *sql.Row) (link.Code, error) {
	var c link.Code
	var accountID sql.NullString
	var created, expires, interval int64
	err := row.Scan(&c.DeviceHash, &c.UserHash, &c.State, &accountID, &c.Requester.Host, &c.Requester.OS, &c.Requester.Client,
		&c.Requester.IP, &created, &expires, &interval)
	if err != nil {
		return link.Code{}, missing(err, link.ErrUnknown)
	}
	c.AccountID, c.CreatedAt, c.ExpiresAt = accountID.String, fromMS(created), fromMS(expires)
	c.Interval = time.Duration(interval) * time.Millisecond
	return c, nil
}

// InsertCode answers link.ErrDuplicate when either hash is taken.
func (s *Store) InsertCode(ctx context.Context, c link.Code, t audit.Trace) error {
	const insert = "INSERT INTO device_codes (" + codeColumns + ") VALUES ($1, $2, $3, NULL, $4, $5, $6, $7, $8, $9, $10)"
	args := []any{c.DeviceHash, c.UserHash, c.State, c.Requester.Host, c.Requester.OS, c.Requester.Client, c.Requester.IP,
		toMS(c.CreatedAt), toMS(c.ExpiresAt), c.Interval.Milliseconds()}
	var err error
	if t.Empty() {
		_, err = s.exec(ctx, insert, args...)
	} else {
		l := t.Line(c.UserHash, "", "") // made here, where no other write waits for it
		err = s.insertTraced(ctx, insert, args, l)
	}
	if duplicate(err) {
		return link.ErrDuplicate
	}
	return err
}

// insertTraced inserts a code, whose arguments are ten, and its line of the trail. PostgreSQL takes them as one statement,
// which spares three round trips; SQLite knows no such statement, and has none to spare.
func (s *Store) insertTraced(ctx context.Context, insert string, args []any, l audit.TrailLine) error {
	if s.group == nil {
		_, err := s.exec(ctx, "WITH code AS ("+insert+`) INSERT INTO link_trail (id, at, action, code_ref, link_ref, account_ref, address_ref)
			VALUES ($11, $12, $13, $14, $15, $16, $17) ON CONFLICT (id) DO NOTHING`,
			append(args, l.ID, toMS(l.At), l.Action, l.Code, l.Link, l.Account, l.Address)...)
		return err
	}
	return s.write(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, insert, args...); err != nil {
			return err
		}
		return insertTrail(ctx, tx, l)
	})
}

// progressQuery is prepared once: waiting clients ask nothing else, and parsing it would cost more than running it.
const progressQuery = "SELECT state, expires_at, interval_ms FROM device_codes WHERE device_hash = $1"

// Progress answers link.ErrUnknown.
func (s *Store) Progress(ctx context.Context, deviceHash string) (link.Progress, error) {
	var state string
	var expires, interval int64
	if err := s.progress.QueryRowContext(s.brief(ctx), deviceHash).Scan(&state, &expires, &interval); err != nil {
		return link.Progress{}, missing(err, link.ErrUnknown)
	}
	return link.Progress{State: link.State(state), ExpiresAt: fromMS(expires), Interval: time.Duration(interval) * time.Millisecond}, nil
}

// CodeByUser answers link.ErrUnknown.
func (s *Store) CodeByUser(ctx context.Context, userHash string) (link.Code, error) {
	return scanCode(s.reads.QueryRowContext(ctx, "SELECT "+codeColumns+" FROM device_codes WHERE user_hash = $1", userHash))
}

// Decide moves a code that is pending and not expired at now.
func (s *Store) Decide(ctx context.Context, userHash string, to link.State, accountID string, now time.Time, t audit.Trace) (bool, error) {
	var moved bool
	err := s.write(ctx, func(tx *sql.Tx) (err error) {
		moved, err = changed(ctx, tx, `UPDATE device_codes SET state = $1, account_id = $2
			WHERE user_hash = $3 AND state = 'pending' AND expires_at > $4`,
			to, sql.NullString{String: accountID, Valid: accountID != ""}, userHash, toMS(now))
		if err != nil || !moved {
			return err
		}
		return trace(ctx, tx, t, userHash, "", accountID)
	})
	return moved, err
}

// RaiseInterval stores a longer interval of a pending code.
func (s *Store) RaiseInterval(ctx context.Context, deviceHash string, interval time.Duration) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "UPDATE device_codes SET interval_ms = $1 WHERE device_hash = $2 AND interval_ms < $1",
			interval.Milliseconds(), deviceHash)
		return err
	})
}

// Redeem consumes an approved code and stores its link, or answers link.ErrUnknown.
func (s *Store) Redeem(ctx context.Context, deviceHash string, deadline time.Time, l link.Link, t audit.Trace) (link.Link, error) {
	err := s.write(ctx, func(tx *sql.Tx) error {
		var userHash string
		who := &l.Requester
		err := tx.QueryRowContext(ctx, `UPDATE device_codes SET state = 'redeemed' WHERE device_hash = $1 AND state = 'approved'
			AND expires_at >= $2 AND EXISTS (SELECT 1 FROM accounts a WHERE a.id = device_codes.account_id AND a.state = 'active')
			RETURNING user_hash, account_id, host, os, client, ip`, deviceHash, toMS(deadline)).
			Scan(&userHash, &l.AccountID, &who.Host, &who.OS, &who.Client, &who.IP)
		if err != nil {
			return missing(err, link.ErrUnknown)
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO links (id, account_id, token_hash, host, os, client, ip, linked_at, expires_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
			l.ID, l.AccountID, l.TokenHash, who.Host, who.OS, who.Client, who.IP, toMS(l.LinkedAt), orNull(l.ExpiresAt))
		if err != nil {
			return err
		}
		if err := run(ctx, tx, "UPDATE device_codes SET link_id = $1 WHERE device_hash = $2", l.ID, deviceHash); err != nil {
			return err
		}
		return trace(ctx, tx, t, userHash, l.ID, l.AccountID)
	})
	return l, err
}

// MarkRepolled notes that a redeemed code was polled again; the first time counts.
func (s *Store) MarkRepolled(ctx context.Context, deviceHash string, now time.Time) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE device_codes SET repolled_at = $1
			WHERE device_hash = $2 AND state = 'redeemed' AND repolled_at IS NULL`, toMS(now), deviceHash)
		return err
	})
}

// LinkByToken answers link.ErrUnknown.
func (s *Store) LinkByToken(ctx context.Context, tokenHash string) (link.Link, error) {
	l := link.Link{TokenHash: tokenHash}
	var linked int64
	var expires, used, revoked, last sql.NullInt64
	var state string
	err := s.reads.QueryRowContext(ctx, `SELECT l.id, l.account_id, l.host, l.os, l.client, l.ip, l.linked_at, l.expires_at,
		l.used_at, l.revoked_at, l.last_used_at, l.last_ip, a.state FROM links l JOIN accounts a ON a.id = l.account_id WHERE l.token_hash = $1`, tokenHash).
		Scan(&l.ID, &l.AccountID, &l.Requester.Host, &l.Requester.OS, &l.Requester.Client, &l.Requester.IP, &linked, &expires, &used, &revoked,
			&last, &l.LastIP, &state)
	if err != nil {
		return link.Link{}, missing(err, link.ErrUnknown)
	}
	l.LinkedAt, l.ExpiresAt, l.UsedAt, l.RevokedAt = fromMS(linked), fromNull(expires), fromNull(used), fromNull(revoked)
	l.Active, l.LastUsedAt = state == "active", fromNull(last)
	return l, nil
}

// MarkUsed notes the use of a token; an unknown address keeps the one known before. link.ErrRevoked when it was revoked
// since it was read.
func (s *Store) MarkUsed(ctx context.Context, linkID, ip string, now time.Time) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		live, err := changed(ctx, tx, `UPDATE links SET used_at = COALESCE(used_at, $1), last_used_at = $1,
			last_ip = CASE WHEN $2 = '' THEN last_ip ELSE $2 END WHERE id = $3 AND revoked_at IS NULL`, toMS(now), ip, linkID)
		if err == nil && !live {
			return link.ErrRevoked
		}
		return err
	})
}

// Sweep revokes unused tokens whose code was polled again before repolled, drops codes that expired before expired, and
// takes all that was deleted out of the journal.
func (s *Store) Sweep(ctx context.Context, now, repolled, expired time.Time, t audit.Trace) (int64, error) {
	var revoked [][2]string
	err := s.write(ctx, func(tx *sql.Tx) (err error) {
		revoked, err = returned(ctx, tx, `UPDATE links SET revoked_at = $1 WHERE used_at IS NULL AND revoked_at IS NULL
			AND id IN (SELECT link_id FROM device_codes WHERE repolled_at < $2) RETURNING id, account_id`, toMS(now), toMS(repolled))
		if err != nil {
			return err
		}
		if err := traceRevoked(ctx, tx, t, revoked); err != nil {
			return err
		}
		return run(ctx, tx, "DELETE FROM device_codes WHERE expires_at < $1", toMS(expired))
	})
	if err == nil {
		_ = s.emptyJournal(ctx) // tried again by the next one; a disk that is full is told by writes
	}
	return int64(len(revoked)), err
}

// PendingCodes counts the codes that a person may still approve.
func (s *Store) PendingCodes(ctx context.Context, now time.Time) (int, error) {
	var n int
	err := s.reads.QueryRowContext(ctx, "SELECT COUNT(*) FROM device_codes WHERE state IN ('pending', 'approved') AND expires_at > $1", toMS(now)).Scan(&n)
	return n, err
}

// AnyLink reads a link by its id, a revoked one too, or answers link.ErrUnknown.
func (s *Store) AnyLink(ctx context.Context, linkID string) (link.Link, error) {
	all, err := s.listLinks(ctx, "l.id = $1", linkID)
	if err == nil && len(all) == 0 {
		err = link.ErrUnknown
	}
	if err != nil {
		return link.Link{}, err
	}
	return all[0], nil
}

// AllLinks lists every link of an account, those that were revoked too, the last used first.
func (s *Store) AllLinks(ctx context.Context, accountID string) ([]link.Link, error) {
	return s.listLinks(ctx, "l.account_id = $1", accountID)
}
