package sqlstore

import (
	"context"
	"database/sql"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/link"
)

const (
	selectLinks = `SELECT l.id, l.account_id, l.host, l.os, l.client, l.ip, l.linked_at, l.expires_at,
			l.used_at, l.last_used_at, l.last_ip, l.revoked_at, a.state = 'active'
		FROM links l JOIN accounts a ON a.id = l.account_id WHERE `
	lastUsedFirst = ` ORDER BY COALESCE(l.last_used_at, l.linked_at) DESC, l.id`
)

func scanLink(row scanner) (l link.Link, err error) {
	who := &l.Requester
	err = row.Scan(&l.ID, &l.AccountID, &who.Host, &who.OS, &who.Client, &who.IP, intoTime(&l.LinkedAt),
		intoTime(&l.ExpiresAt), intoTime(&l.UsedAt), intoTime(&l.LastUsedAt), &l.LastIP, intoTime(&l.RevokedAt), &l.Active)
	return l, err
}

// LinkByToken returns link.ErrUnknown for an unknown token.
func (s *Store) LinkByToken(ctx context.Context, tokenHash string) (link.Link, error) {
	l, err := queryOne(ctx, s.reads, link.ErrUnknown, scanLink, selectLinks+"l.token_hash = $1", tokenHash)
	if err == nil {
		l.TokenHash = tokenHash
	}
	return l, err
}

// AnyLink returns a link by its id, even if it is revoked, or link.ErrUnknown.
func (s *Store) AnyLink(ctx context.Context, linkID string) (link.Link, error) {
	return queryOne(ctx, s.reads, link.ErrUnknown, scanLink, selectLinks+"l.id = $1", linkID)
}

// AccountLinks lists the links that are not revoked, most recently used first.
func (s *Store) AccountLinks(ctx context.Context, accountID string) ([]link.Link, error) {
	return queryAll(ctx, s.reads, scanLink,
		selectLinks+"l.account_id = $1 AND l.revoked_at IS NULL"+lastUsedFirst, accountID)
}

// AllLinks lists every link of an account, including revoked links, most recently used first.
func (s *Store) AllLinks(ctx context.Context, accountID string) ([]link.Link, error) {
	return queryAll(ctx, s.reads, scanLink, selectLinks+"l.account_id = $1"+lastUsedFirst, accountID)
}

// RevokeLinks revokes the link with this ID of the entry's account, or all its links if linkID is "". It returns the
// number of revoked links.
func (s *Store) RevokeLinks(
	ctx context.Context, linkID string, now time.Time, e audit.Entry, t audit.Trace,
) (n int, err error) {
	err = s.write(ctx, func(tx *sql.Tx) error {
		if n, err = revokeLinks(ctx, tx, e.AccountID, linkID, now, t); err != nil || n == 0 {
			return err
		}
		return insertAudit(ctx, tx, e)
	})
	return n, err
}

// revokeLinks revokes the account's link with this ID, or all links if linkID is "". In the latter case it first denies
// the approved codes that are not yet redeemed, because they would become links. That waits for a concurrent redemption
// and makes its link visible.
func revokeLinks(
	ctx context.Context, tx *sql.Tx, accountID, linkID string, now time.Time, t audit.Trace,
) (int, error) {
	if linkID == "" {
		codes, err := queryAll(ctx, tx, scanOwnedRef, `UPDATE device_codes SET state = 'denied'
			WHERE account_id = $1 AND state = 'approved' RETURNING user_hash, account_id`, accountID)
		if err != nil {
			return 0, err
		}
		deny := t
		deny.Action = audit.TrailDeny
		for _, c := range codes {
			if err := insertTrace(ctx, tx, deny, c.ref, "", c.accountID); err != nil {
				return 0, err
			}
		}
	}
	links, err := queryAll(ctx, tx, scanOwnedRef, `UPDATE links SET revoked_at = $1
		WHERE account_id = $2 AND revoked_at IS NULL AND ($3 = '' OR id = $3) RETURNING id, account_id`,
		toMS(now), accountID, linkID)
	if err != nil {
		return 0, err
	}
	return len(links), traceLinks(ctx, tx, t, links)
}

// ownedRef identifies a link or code that a statement changed, and the account that owns it.
type ownedRef struct{ ref, accountID string }

func scanOwnedRef(row scanner) (r ownedRef, err error) {
	err = row.Scan(&r.ref, intoText(&r.accountID))
	return r, err
}

// traceLinks inserts a trail line for each link.
func traceLinks(ctx context.Context, tx *sql.Tx, t audit.Trace, links []ownedRef) error {
	for _, l := range links {
		if err := insertTrace(ctx, tx, t, "", l.ref, l.accountID); err != nil {
			return err
		}
	}
	return nil
}
