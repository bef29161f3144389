package sessions

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/db"
	"github.com/service-dev/service/backend/internal/projects"
)

// Store stores sessions and their event logs. Every method is atomic.
type Store struct{ *db.DB }

// NewStore returns a store in d.
func NewStore(d *db.DB) *Store { return &Store{d} }

const sessionColumns = `id, account_id, link_id, app_id, platform, device_model, created_at, last_active_at, expires_at,
	closed_at, last_seq, first_seq`

const selectSessions = `SELECT ` + sessionColumns + ` FROM ` + projects.EffectiveSessions + ` WHERE `

func scanSession(row db.Row) (s Session, err error) {
	err = row.Scan(&s.ID, &s.Owner.AccountID, &s.Owner.LinkID, &s.Project, &s.Platform, &s.DeviceModel,
		db.IntoTime(&s.CreatedAt), db.IntoTime(&s.LastActive), db.IntoTime(&s.ExpiresAt), db.IntoTime(&s.ClosedAt),
		&s.LastSeq,
		&s.FirstSeq)
	return s, err
}

// querySession returns ErrNotFound if the query returns no row.
func querySession(ctx context.Context, q db.Querier, query string, args ...any) (Session, error) {
	return db.One(ctx, q, ErrNotFound, scanSession, query, args...)
}

// MintSession extends and returns the current open session of New's owner, project and platform, or inserts New.
// Concurrent callers all get the same session. was is the session's device model before the call. MintSession may
// return a *PacedError.
func (s *Store) MintSession(
	ctx context.Context, m Mint,
) (got Session, created bool, former string, err error) {
	err = s.Write(ctx, func(tx *sql.Tx) error {
		got, created, former, err = mint(ctx, tx, m)
		return err
	})
	return got, created, former, err
}

// maxMintRounds is the maximum number of attempts to resume or insert a session on PostgreSQL, where concurrent calls
// can conflict. On SQLite, which has a single writer, the first attempt succeeds.
const maxMintRounds = 20

func mint(ctx context.Context, tx *sql.Tx, m Mint) (Session, bool, string, error) {
	owner := m.New.Owner
	project, err := projects.Ensure(ctx, tx, owner.AccountID, m.New.Project, audit.Agent(owner.LinkID), m.Now)
	if err != nil {
		return Session{}, false, "", err
	}
	m.New.Project = project
	for range maxMintRounds {
		if !m.Fresh {
			got, former, err := resume(ctx, tx, m)
			if !errors.Is(err, ErrNotFound) {
				return got, false, former, err
			}
		}
		inserted, err := insertCurrent(ctx, tx, m)
		if err != nil {
			return Session{}, false, "", err
		}
		if inserted {
			return m.New, true, m.New.DeviceModel, nil
		}
	}
	return Session{}, false, "", errors.New("insert session: too many conflicts with concurrent calls")
}

// resume extends the current open session. The first UPDATE locks the row, so former matches the result.
func resume(ctx context.Context, tx *sql.Tx, m Mint) (got Session, former string, err error) {
	n := m.New
	got, err = querySession(ctx, tx, `UPDATE sessions SET last_active_at = $1, expires_at = $2
		WHERE account_id = $3 AND link_id = $4 AND app_id = $5 AND platform = $6
		AND is_current = 1 AND closed_at IS NULL AND expires_at > $1 RETURNING `+sessionColumns,
		db.ToMS(m.Now), db.ToMS(n.ExpiresAt), n.Owner.AccountID, n.Owner.LinkID, n.Project, n.Platform)
	former = got.DeviceModel
	if err != nil || m.SwitchTo == "" || m.SwitchTo == former {
		return got, former, err
	}
	got, err = querySession(ctx, tx, `UPDATE sessions SET device_model = $1 WHERE id = $2 RETURNING `+sessionColumns,
		m.SwitchTo, got.ID)
	return got, former, err
}

func insertCurrent(ctx context.Context, tx *sql.Tx, m Mint) (bool, error) {
	n := m.New
	if err := checkMintRate(ctx, tx, m); err != nil {
		return false, err
	}
	err := db.Exec(ctx, tx, "retire former session", `UPDATE sessions SET is_current = 0
		WHERE account_id = $1 AND link_id = $2 AND app_id = $3 AND platform = $4 AND is_current = 1
		AND ($5 = 1 OR closed_at IS NOT NULL OR expires_at <= $6)`,
		n.Owner.AccountID, n.Owner.LinkID, n.Project, n.Platform, db.BoolInt(m.Fresh), db.ToMS(m.Now))
	if err != nil {
		return false, err
	}
	return db.Changed(ctx, tx, "insert session", `INSERT INTO sessions (id, account_id, link_id, app_id, platform,
			device_model, is_current, created_at, last_active_at, expires_at)
		VALUES ($1, $2, $3, $4, $5, $6, 1, $7, $8, $9) ON CONFLICT DO NOTHING`,
		n.ID, n.Owner.AccountID, n.Owner.LinkID, n.Project, n.Platform, n.DeviceModel,
		db.ToMS(n.CreatedAt), db.ToMS(n.LastActive), db.ToMS(n.ExpiresAt))
}

// checkMintRate returns a *PacedError if the account has reached its limit of new sessions within the last
// minute. It locks the account, so that several processes share one count.
func checkMintRate(ctx context.Context, tx *sql.Tx, m Mint) error {
	if m.PerMinute == 0 {
		return nil
	}
	if _, err := db.LockAccount(ctx, tx, m.New.Owner.AccountID); err != nil {
		return err
	}
	// Select the oldest session that counts toward the limit.
	created, err := db.QueryValue[int64](ctx, tx,
		`SELECT created_at FROM sessions WHERE account_id = $1 AND created_at > $2
		ORDER BY created_at DESC LIMIT 1 OFFSET $3`, m.New.Owner.AccountID, db.ToMS(m.Now.Add(-time.Minute)), m.PerMinute-1)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err != nil:
		return fmt.Errorf("count the account's sessions: %w", err)
	}
	return &PacedError{Wait: db.FromMS(created).Add(time.Minute).Sub(m.Now)}
}

// Session returns ErrNotFound for an unknown session. A session whose link is revoked or whose account is not active
// is reported as closed, and it expires no later than its link.
func (s *Store) Session(ctx context.Context, id string) (Session, error) {
	return querySession(ctx, s, selectSessions+`id = $1`, id)
}

// maxListed is the maximum number of sessions that OpenSessions returns; an account may have any number.
const maxListed = 500

// OpenSessions lists an account's open sessions, newest first.
func (s *Store) OpenSessions(ctx context.Context, accountID string, now time.Time) ([]Session, error) {
	return listSessions(ctx, s, projects.UnexpiredSessions+` ORDER BY created_at DESC, id LIMIT $3`, accountID,
		db.ToMS(now), maxListed)
}

// SomeSessions returns the sessions in ids that exist, in any order. ids may have a few hundred
// elements.
func (s *Store) SomeSessions(ctx context.Context, ids []string) ([]Session, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	return listSessions(ctx, s, `id IN `+db.Placeholders(len(ids), 1), db.Args(ids)...)
}

func listSessions(ctx context.Context, q db.Querier, condition string, args ...any) ([]Session, error) {
	list, err := db.All(ctx, q, scanSession, selectSessions+condition, args...)
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	return list, nil
}

// CloseSession closes a session, revokes its secrets and deletes its rows and its assistant script. It returns true if
// this call closed the session.
func (s *Store) CloseSession(
	ctx context.Context, id string, now time.Time,
) (got Session, closed bool, err error) {
	err = s.Write(ctx, func(tx *sql.Tx) error {
		l, err := lockLog(ctx, tx, id)
		if err != nil {
			return err
		}
		closed, err = db.Changed(ctx, tx, "close session",
			`UPDATE sessions SET closed_at = $1, is_current = 0 WHERE id = $2 AND closed_at IS NULL`, db.ToMS(now), id)
		if err != nil {
			return err
		}
		if err := emptyLog(ctx, tx, id, l); err != nil {
			return err
		}
		if err := endGateway(ctx, tx, id); err != nil {
			return err
		}
		err = db.Exec(ctx, tx, "revoke session secrets",
			`UPDATE session_secrets SET revoked_at = $1 WHERE session_id = $2 AND revoked_at IS NULL`, db.ToMS(now), id)
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
		_ = s.TruncateJournal(ctx) // the next sweep tries again
	}
	return got, closed, err
}

// TouchSession extends an open session.
func (s *Store) TouchSession(ctx context.Context, id string, now, expires time.Time) error {
	_, err := s.Exec(ctx, "touch session", `UPDATE sessions SET last_active_at = $1, expires_at = $2
		WHERE id = $3 AND closed_at IS NULL AND expires_at > $1`, db.ToMS(now), db.ToMS(expires), id)
	return err
}

// SetSessionModel stores the device model of an open session.
func (s *Store) SetSessionModel(ctx context.Context, id, model string, now time.Time) error {
	_, err := s.Exec(ctx, "set session model",
		`UPDATE sessions SET device_model = $1 WHERE id = $2 AND closed_at IS NULL AND expires_at > $3`, model, id,
		db.ToMS(now))
	return err
}

// AddSessionSecret stores the hash of an app secret. It deletes the oldest secrets beyond MaxSecrets. It
// returns ErrClosed or ErrNotFound on failure.
func (s *Store) AddSessionSecret(ctx context.Context, sessionID, hash string, now time.Time) error {
	return s.writeOpen(ctx, sessionID, "insert session secret",
		db.Stmt(`INSERT INTO session_secrets (session_id, hash, created_at) VALUES ($1, $2, $3)`, sessionID, hash,
			db.ToMS(now)),
		db.Stmt(`DELETE FROM session_secrets WHERE session_id = $1 AND hash IN (SELECT hash FROM session_secrets
			WHERE session_id = $1 AND hash <> $2 ORDER BY created_at DESC, hash LIMIT $3 OFFSET $4)`,
			sessionID, hash, MaxSecrets, MaxSecrets-1))
}

// HasSessionSecret reports whether the session has this secret. Closing a session revokes its secrets, but an app with
// a revoked secret may still learn that the session is closed. A revoked secret of an open session is not accepted.
func (s *Store) HasSessionSecret(ctx context.Context, sessionID, hash string) (bool, error) {
	return db.Exists(ctx, s, `SELECT 1 FROM session_secrets x JOIN sessions s ON s.id = x.session_id
		WHERE x.session_id = $1 AND x.hash = $2 AND (x.revoked_at IS NULL OR s.closed_at IS NOT NULL)`, sessionID, hash)
}

// SetAssistantScript replaces the script of a session. It returns ErrClosed or ErrNotFound on
// failure.
func (s *Store) SetAssistantScript(ctx context.Context, id, script string) error {
	return s.writeOpen(ctx, id, "set assistant script", db.Stmt(`INSERT INTO session_scripts (session_id, body)
		VALUES ($1, $2)
		ON CONFLICT (session_id) DO UPDATE SET body = excluded.body`, id, script))
}

// AssistantScript returns the script of an open session, or "" if it has none. It returns ErrClosed for any
// other session.
func (s *Store) AssistantScript(ctx context.Context, id string, now time.Time) (string, error) {
	script, err := db.QueryValue[string](ctx, s, `SELECT COALESCE((SELECT body FROM session_scripts WHERE session_id = $1),
		'') FROM `+projects.EffectiveSessions+` WHERE id = $1 AND closed_at IS NULL AND expires_at > $2`, id, db.ToMS(now))
	return script, db.ReplaceNoRows(err, ErrClosed)
}

// AddGatewayToken stores the hash of a token that is valid until ends. It deletes the session's expired tokens, and the
// oldest ones beyond MaxSecrets.
func (s *Store) AddGatewayToken(ctx context.Context, id, hash string, now, ends time.Time) error {
	return s.writeOpen(ctx, id, "insert gateway token",
		db.Stmt(`INSERT INTO session_gateway_tokens (hash, session_id, expires_at) VALUES ($1, $2, $3)`, hash, id,
			db.ToMS(ends)),
		db.Stmt(`DELETE FROM session_gateway_tokens WHERE session_id = $1 AND (expires_at <= $2 OR hash IN
			(SELECT hash FROM session_gateway_tokens WHERE session_id = $1 AND hash <> $3
				ORDER BY expires_at DESC, hash LIMIT $4 OFFSET $5))`,
			id, db.ToMS(now), hash, MaxSecrets, MaxSecrets-1))
}

// SessionByGatewayToken returns the open session of a valid token, or ErrBadSecret.
func (s *Store) SessionByGatewayToken(ctx context.Context, hash string, now time.Time) (Session, error) {
	return db.One(ctx, s, ErrBadSecret, scanSession, selectSessions+`closed_at IS NULL AND expires_at > $2
		AND id = (SELECT session_id FROM session_gateway_tokens WHERE hash = $1 AND expires_at > $2)`, hash, db.ToMS(now))
}

// writeOpen changes data of a session that is not closed. It locks the session's row, so that no data is added while
// the session is being closed, and so that concurrent calls delete rows in the same order.
func (s *Store) writeOpen(ctx context.Context, id, what string, statements ...db.Statement) error {
	return s.Write(ctx, func(tx *sql.Tx) error {
		l, err := lockLog(ctx, tx, id)
		switch {
		case err != nil:
			return err
		case l.closed:
			return ErrClosed
		}
		return db.ExecAll(ctx, tx, what, statements...)
	})
}

// endGateway deletes the assistant script and the gateway tokens of a session.
func endGateway(ctx context.Context, tx *sql.Tx, id string) error {
	return db.ExecAll(ctx, tx, "delete gateway of session",
		db.Stmt(`DELETE FROM session_scripts WHERE session_id = $1`, id),
		db.Stmt(`DELETE FROM session_gateway_tokens WHERE session_id = $1`, id))
}

// sweepGateways deletes expired tokens, and the scripts of sessions that were closed or inactive since idle.
func (s *Store) sweepGateways(ctx context.Context, idle time.Time) error {
	return s.Write(ctx, func(tx *sql.Tx) error {
		return db.ExecAll(ctx, tx, "sweep gateways of sessions",
			db.Stmt(`DELETE FROM session_scripts WHERE EXISTS (SELECT 1 FROM sessions s
				WHERE s.id = session_scripts.session_id AND (s.closed_at IS NOT NULL OR s.last_active_at < $1))`, db.ToMS(idle)),
			db.Stmt(`DELETE FROM session_gateway_tokens WHERE expires_at < $1`, db.ToMS(idle)))
	})
}

// ListSessions lists open sessions of an account, last used first.
func (s *Store) ListSessions(
	ctx context.Context, accountID string, sel Selection, now time.Time,
) ([]Session, error) {
	condition, args := projects.UnexpiredSessions, []any{accountID, db.ToMS(now)}
	if sel.Project != "" {
		args = append(args, sel.Project)
		condition += ` AND app_id = $` + strconv.Itoa(len(args))
	}
	if len(sel.Without) > 0 {
		condition += ` AND id NOT IN ` + db.Placeholders(len(sel.Without), len(args)+1)
		args = append(args, db.Args(sel.Without)...)
	}
	if p := sel.Before; p != nil {
		args = append(args, db.ToMS(p.LastActive), p.ID)
		condition += ` AND (last_active_at, id) < ($` + strconv.Itoa(len(args)-1) + `, $` + strconv.Itoa(len(args)) + `)`
	}
	return listSessions(ctx, s, condition+` ORDER BY last_active_at DESC, id DESC LIMIT `+strconv.Itoa(sel.Limit),
		args...)
}

// Milestones returns the milestones that the account has reached.
func (s *Store) Milestones(ctx context.Context, accountID string) (m Milestones, err error) {
	if m.Opened, err = db.Exists(ctx, s, `SELECT 1 FROM sessions WHERE account_id = $1 LIMIT 1`, accountID); err != nil {
		return m, err
	}
	m.AppSeen, err = db.Exists(ctx, s,
		`SELECT 1 FROM sessions WHERE account_id = $1 AND app_at > 0 LIMIT 1`, accountID)
	return m, err
}
