package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/sessions"
)

const sessionColumns = `id, account_id, link_id, app_id, platform, device_model, created_at, last_active_at, expires_at,
	closed_at, last_seq, first_seq`

// effectiveSessions selects sessions as all readers see them: a session ends with the link that created it, and is
// closed while its account is not active. A process that revokes a link therefore does not need to update sessions.
const effectiveSessions = `(SELECT s.id, s.account_id, s.link_id, s.app_id, s.platform, s.device_model, s.created_at,
		s.last_active_at, CASE WHEN l.expires_at < s.expires_at THEN l.expires_at ELSE s.expires_at END AS expires_at,
		COALESCE(s.closed_at, l.revoked_at, CASE WHEN a.state <> 'active' THEN s.last_active_at END) AS closed_at,
		s.last_seq, s.first_seq
	FROM sessions s JOIN links l ON l.id = s.link_id JOIN accounts a ON a.id = s.account_id) AS s`

const selectSessions = `SELECT ` + sessionColumns + ` FROM ` + effectiveSessions + ` WHERE `

func scanSession(row scanner) (s sessions.Session, err error) {
	err = row.Scan(&s.ID, &s.Owner.AccountID, &s.Owner.LinkID, &s.Project, &s.Platform, &s.DeviceModel,
		intoTime(&s.CreatedAt), intoTime(&s.LastActive), intoTime(&s.ExpiresAt), intoTime(&s.ClosedAt), &s.LastSeq,
		&s.FirstSeq)
	return s, err
}

// querySession returns sessions.ErrNotFound if the query returns no row.
func querySession(ctx context.Context, q querier, query string, args ...any) (sessions.Session, error) {
	return queryOne(ctx, q, sessions.ErrNotFound, scanSession, query, args...)
}

// MintSession resumes the current open session of the key, or inserts m.New and makes it current. former is the
// session's device model before the call.
func (s *Store) MintSession(
	ctx context.Context, m sessions.Mint,
) (got sessions.Session, created bool, former string, err error) {
	err = s.write(ctx, func(tx *sql.Tx) error {
		got, created, former, err = mint(ctx, tx, m)
		return err
	})
	return got, created, former, err
}

// maxMintRounds is the number of attempts on PostgreSQL, where other calls may intervene. SQLite has a single writer.
const maxMintRounds = 20

func mint(ctx context.Context, tx *sql.Tx, m sessions.Mint) (sessions.Session, bool, string, error) {
	owner := m.New.Owner
	project, err := ensureProject(ctx, tx, owner.AccountID, m.New.Project, audit.Agent(owner.LinkID), m.Now)
	if err != nil {
		return sessions.Session{}, false, "", err
	}
	m.New.Project = project
	for range maxMintRounds {
		if !m.Fresh {
			got, former, err := resume(ctx, tx, m)
			if !errors.Is(err, sessions.ErrNotFound) {
				return got, false, former, err
			}
		}
		inserted, err := insertCurrent(ctx, tx, m)
		if err != nil {
			return sessions.Session{}, false, "", err
		}
		if inserted {
			return m.New, true, m.New.DeviceModel, nil
		}
	}
	return sessions.Session{}, false, "", errors.New("insert session: concurrent calls kept intervening")
}

// resume extends the current open session. The first UPDATE locks the row, so former matches the result.
func resume(ctx context.Context, tx *sql.Tx, m sessions.Mint) (got sessions.Session, former string, err error) {
	n := m.New
	got, err = querySession(ctx, tx, `UPDATE sessions SET last_active_at = $1, expires_at = $2
		WHERE account_id = $3 AND link_id = $4 AND app_id = $5 AND platform = $6
		AND is_current = 1 AND closed_at IS NULL AND expires_at > $1 RETURNING `+sessionColumns,
		toMS(m.Now), toMS(n.ExpiresAt), n.Owner.AccountID, n.Owner.LinkID, n.Project, n.Platform)
	former = got.DeviceModel
	if err != nil || m.SwitchTo == "" || m.SwitchTo == former {
		return got, former, err
	}
	got, err = querySession(ctx, tx, `UPDATE sessions SET device_model = $1 WHERE id = $2 RETURNING `+sessionColumns,
		m.SwitchTo, got.ID)
	return got, former, err
}

func insertCurrent(ctx context.Context, tx *sql.Tx, m sessions.Mint) (bool, error) {
	n := m.New
	if err := checkMintRate(ctx, tx, m); err != nil {
		return false, err
	}
	err := execTx(ctx, tx, "retire former session", `UPDATE sessions SET is_current = 0
		WHERE account_id = $1 AND link_id = $2 AND app_id = $3 AND platform = $4 AND is_current = 1
		AND ($5 = 1 OR closed_at IS NOT NULL OR expires_at <= $6)`,
		n.Owner.AccountID, n.Owner.LinkID, n.Project, n.Platform, boolInt(m.Fresh), toMS(m.Now))
	if err != nil {
		return false, err
	}
	return changed(ctx, tx, "insert session", `INSERT INTO sessions (id, account_id, link_id, app_id, platform,
			device_model, is_current, created_at, last_active_at, expires_at)
		VALUES ($1, $2, $3, $4, $5, $6, 1, $7, $8, $9) ON CONFLICT DO NOTHING`,
		n.ID, n.Owner.AccountID, n.Owner.LinkID, n.Project, n.Platform, n.DeviceModel,
		toMS(n.CreatedAt), toMS(n.LastActive), toMS(n.ExpiresAt))
}

// checkMintRate returns a *sessions.PacedError if the account has reached its limit of new sessions within the last
// minute. It locks the account, so that several processes share one count.
func checkMintRate(ctx context.Context, tx *sql.Tx, m sessions.Mint) error {
	if m.PerMinute == 0 {
		return nil
	}
	if err := lockProjects(ctx, tx, m.New.Owner.AccountID); err != nil {
		return err
	}
	// Select the oldest session that counts toward the limit.
	created, err := queryValue[int64](ctx, tx, `SELECT created_at FROM sessions WHERE account_id = $1 AND created_at > $2
		ORDER BY created_at DESC LIMIT 1 OFFSET $3`, m.New.Owner.AccountID, toMS(m.Now.Add(-time.Minute)), m.PerMinute-1)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err != nil:
		return fmt.Errorf("count the account's sessions: %w", err)
	}
	return &sessions.PacedError{Wait: fromMS(created).Add(time.Minute).Sub(m.Now)}
}

// Session returns sessions.ErrNotFound for an unknown session.
func (s *Store) Session(ctx context.Context, id string) (sessions.Session, error) {
	return querySession(ctx, s.reads, selectSessions+`id = $1`, id)
}

// maxListed is the maximum number of sessions that OpenSessions returns; an account may have any number.
const maxListed = 500

// OpenSessions lists an account's open sessions, newest first.
func (s *Store) OpenSessions(ctx context.Context, accountID string, now time.Time) ([]sessions.Session, error) {
	return listSessions(ctx, s.reads, unexpired+` ORDER BY created_at DESC, id LIMIT $3`, accountID, toMS(now), maxListed)
}

// SomeSessions returns the given sessions that exist, in any order. ids may have a few hundred elements.
func (s *Store) SomeSessions(ctx context.Context, ids []string) ([]sessions.Session, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	return listSessions(ctx, s.reads, `id IN `+placeholders(len(ids), 1), anys(ids)...)
}

func listSessions(ctx context.Context, q querier, condition string, args ...any) ([]sessions.Session, error) {
	list, err := queryAll(ctx, q, scanSession, selectSessions+condition, args...)
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	return list, nil
}

// CloseSession closes a session, revokes its secrets and deletes its rows and its assistant script. It returns true if
// this call closed the session.
func (s *Store) CloseSession(
	ctx context.Context, id string, now time.Time,
) (got sessions.Session, closed bool, err error) {
	err = s.write(ctx, func(tx *sql.Tx) error {
		l, err := lockLog(ctx, tx, id)
		if err != nil {
			return err
		}
		closed, err = changed(ctx, tx, "close session",
			`UPDATE sessions SET closed_at = $1, is_current = 0 WHERE id = $2 AND closed_at IS NULL`, toMS(now), id)
		if err != nil {
			return err
		}
		if err := emptyLog(ctx, tx, id, l); err != nil {
			return err
		}
		if err := endGateway(ctx, tx, id); err != nil {
			return err
		}
		err = execTx(ctx, tx, "revoke session secrets",
			`UPDATE session_secrets SET revoked_at = $1 WHERE session_id = $2 AND revoked_at IS NULL`, toMS(now), id)
		if err != nil {
			return err
		}
		got, err = querySession(ctx, tx, selectSessions+`id = $1`, id)
		return err
	})
	for more := err == nil; more; {
		// If this fails, the remaining rows are invisible to readers, and the next sweep deletes them.
		if more, err = s.purgeLog(ctx, id); err != nil {
			return got, closed, nil
		}
	}
	if err == nil && closed {
		_ = s.truncateJournal(ctx) // the next sweep tries again
	}
	return got, closed, err
}

// TouchSession extends an open session.
func (s *Store) TouchSession(ctx context.Context, id string, now, expires time.Time) error {
	_, err := s.exec(ctx, "touch session", `UPDATE sessions SET last_active_at = $1, expires_at = $2
		WHERE id = $3 AND closed_at IS NULL AND expires_at > $1`, toMS(now), toMS(expires), id)
	return err
}

// SetSessionModel stores the device model of an open session.
func (s *Store) SetSessionModel(ctx context.Context, id, model string, now time.Time) error {
	_, err := s.exec(ctx, "set session model",
		`UPDATE sessions SET device_model = $1 WHERE id = $2 AND closed_at IS NULL AND expires_at > $3`, model, id, toMS(now))
	return err
}

// AddSessionSecret stores the hash of an app secret. It deletes the oldest secrets beyond sessions.MaxSecrets. It
// returns sessions.ErrClosed or sessions.ErrNotFound on failure.
func (s *Store) AddSessionSecret(ctx context.Context, sessionID, hash string, now time.Time) error {
	return s.writeOpen(ctx, sessionID, "insert session secret",
		stmt(`INSERT INTO session_secrets (session_id, hash, created_at) VALUES ($1, $2, $3)`, sessionID, hash, toMS(now)),
		stmt(`DELETE FROM session_secrets WHERE session_id = $1 AND hash IN (SELECT hash FROM session_secrets
			WHERE session_id = $1 AND hash <> $2 ORDER BY created_at DESC, hash LIMIT $3 OFFSET $4)`,
			sessionID, hash, sessions.MaxSecrets, sessions.MaxSecrets-1))
}

// HasSessionSecret reports whether the session has this secret. Closing a session revokes its secrets, but an app with
// a revoked secret may still learn that the session is closed. A revoked secret of an open session is not accepted.
func (s *Store) HasSessionSecret(ctx context.Context, sessionID, hash string) (bool, error) {
	return hasRow(ctx, s.reads, `SELECT 1 FROM session_secrets x JOIN sessions s ON s.id = x.session_id
		WHERE x.session_id = $1 AND x.hash = $2 AND (x.revoked_at IS NULL OR s.closed_at IS NOT NULL)`, sessionID, hash)
}
