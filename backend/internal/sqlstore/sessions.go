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

const sessionColumns = `id, account_id, link_id, app_id, platform, device_model, created_at, last_active_at, expires_at, closed_at, last_seq, first_seq`

// sessionsAsTheyAre are sessions as everyone but the writing statements sees them: one ends with the link that minted it
// and is closed while its account is not active. So what revokes a link, in whichever process, need not know of sessions.
const sessionsAsTheyAre = `(SELECT s.id, s.account_id, s.link_id, s.app_id, s.platform, s.device_model, s.created_at, s.last_active_at,
	CASE WHEN l.expires_at < s.expires_at THEN l.expires_at ELSE s.expires_at END AS expires_at,
	COALESCE(s.closed_at, l.revoked_at, CASE WHEN a.state <> 'active' THEN s.last_active_at END) AS closed_at, s.last_seq, s.first_seq
	FROM sessions s JOIN links l ON l.id = s.link_id JOIN accounts a ON a.id = s.account_id) AS s`

type scanner interface{ Scan(dest ...any) error }

func scanSession(row scanner) (sessions.Session, error) {
	var s sessions.Session
	var created, active, expires int64
	var closed sql.NullInt64
	err := row.Scan(&s.ID, &s.Owner.AccountID, &s.Owner.LinkID, &s.Project, &s.Platform, &s.DeviceModel,
		&created, &active, &expires, &closed, &s.LastSeq, &s.FirstSeq)
	if err != nil {
		return sessions.Session{}, missing(err, sessions.ErrNotFound)
	}
	s.CreatedAt, s.LastActive, s.ExpiresAt, s.ClosedAt = fromMS(created), fromMS(active), fromMS(expires), fromNull(closed)
	return s, nil
}

// MintSession resumes the current open session of the key, or inserts m.New and makes it current.
func (s *Store) MintSession(ctx context.Context, m sessions.Mint) (got sessions.Session, created bool, was string, err error) {
	err = s.write(ctx, func(tx *sql.Tx) error {
		got, created, was, err = mint(ctx, tx, m)
		return err
	})
	return got, created, was, err
}

// mintRounds bounds how often another mint may get in between (PostgreSQL; SQLite has one writer).
const mintRounds = 20

func mint(ctx context.Context, tx *sql.Tx, m sessions.Mint) (sessions.Session, bool, string, error) {
	project, err := ensureProject(ctx, tx, m.New.Owner.AccountID, m.New.Project, audit.Agent(m.New.Owner.LinkID), m.Now)
	if err != nil {
		return sessions.Session{}, false, "", err
	}
	m.New.Project = project
	n := m.New
	for range mintRounds {
		if !m.Fresh {
			got, was, err := resume(ctx, tx, m)
			if !errors.Is(err, sessions.ErrNotFound) {
				return got, false, was, err
			}
		}
		inserted, err := insertCurrent(ctx, tx, m)
		if err != nil {
			return sessions.Session{}, false, "", err
		}
		if inserted {
			return n, true, n.DeviceModel, nil
		}
	}
	return sessions.Session{}, false, "", errors.New("inserting session: others keep getting in between")
}

// resume slides the current open session. The row is locked by the first UPDATE, so was and the result belong together.
func resume(ctx context.Context, tx *sql.Tx, m sessions.Mint) (got sessions.Session, was string, err error) {
	n := m.New
	before, err := scanSession(tx.QueryRowContext(ctx, `UPDATE sessions SET last_active_at = $1, expires_at = $2
		WHERE account_id = $3 AND link_id = $4 AND app_id = $5 AND platform = $6
		AND is_current = 1 AND closed_at IS NULL AND expires_at > $1 RETURNING `+sessionColumns,
		toMS(m.Now), toMS(n.ExpiresAt), n.Owner.AccountID, n.Owner.LinkID, n.Project, n.Platform))
	if err != nil {
		return sessions.Session{}, "", err
	}
	was = before.DeviceModel
	if m.SwitchTo == "" || m.SwitchTo == was {
		return before, was, nil
	}
	got, err = scanSession(tx.QueryRowContext(ctx, `UPDATE sessions SET device_model = $1 WHERE id = $2 RETURNING `+sessionColumns,
		m.SwitchTo, before.ID))
	return got, was, err
}

func insertCurrent(ctx context.Context, tx *sql.Tx, m sessions.Mint) (bool, error) {
	n := m.New
	if err := pace(ctx, tx, m); err != nil {
		return false, err
	}
	_, err := tx.ExecContext(ctx, `UPDATE sessions SET is_current = 0
		WHERE account_id = $1 AND link_id = $2 AND app_id = $3 AND platform = $4 AND is_current = 1
		AND ($5 = 1 OR closed_at IS NOT NULL OR expires_at <= $6)`,
		n.Owner.AccountID, n.Owner.LinkID, n.Project, n.Platform, boolInt(m.Fresh), toMS(m.Now))
	if err != nil {
		return false, fmt.Errorf("retiring the former session: %w", err)
	}
	inserted, err := changed(ctx, tx, `INSERT INTO sessions (id, account_id, link_id, app_id, platform, device_model, is_current,
		created_at, last_active_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6, 1, $7, $8, $9) ON CONFLICT DO NOTHING`,
		n.ID, n.Owner.AccountID, n.Owner.LinkID, n.Project, n.Platform, n.DeviceModel,
		toMS(n.CreatedAt), toMS(n.LastActive), toMS(n.ExpiresAt))
	if err != nil {
		return false, fmt.Errorf("inserting session: %w", err)
	}
	return inserted, nil
}

// pace refuses a session when the account made as many as it may within the minute before. The account is locked, so that
// several processes count alike.
func pace(ctx context.Context, tx *sql.Tx, m sessions.Mint) error {
	if m.PerMinute == 0 {
		return nil
	}
	if err := lockProjects(ctx, tx, m.New.Owner.AccountID); err != nil {
		return err
	}
	var freed int64 // when the session was made that stands in the way for longest
	err := tx.QueryRowContext(ctx, `SELECT created_at FROM sessions WHERE account_id = $1 AND created_at > $2
		ORDER BY created_at DESC LIMIT 1 OFFSET $3`, m.New.Owner.AccountID, toMS(m.Now.Add(-time.Minute)), m.PerMinute-1).Scan(&freed)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("counting the account's sessions: %w", err)
	}
	return &sessions.PacedError{Wait: fromMS(freed).Add(time.Minute).Sub(m.Now)}
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Session reads one, or returns sessions.ErrNotFound.
func (s *Store) Session(ctx context.Context, id string) (sessions.Session, error) {
	return scanSession(s.reads.QueryRowContext(ctx, `SELECT `+sessionColumns+` FROM `+sessionsAsTheyAre+` WHERE id = $1`, id))
}

// maxListed bounds a list; sessions are unlimited.
const maxListed = 500

// OpenSessions lists an account's open sessions, newest first.
func (s *Store) OpenSessions(ctx context.Context, accountID string, now time.Time) ([]sessions.Session, error) {
	rows, err := s.reads.QueryContext(ctx, `SELECT `+sessionColumns+` FROM `+sessionsAsTheyAre+`
		WHERE account_id = $1 AND closed_at IS NULL AND expires_at > $2 ORDER BY created_at DESC, id LIMIT $3`,
		accountID, toMS(now), maxListed)
	if err != nil {
		return nil, fmt.Errorf("listing sessions: %w", err)
	}
	defer rows.Close()
	var list []sessions.Session
	for rows.Next() {
		one, err := scanSession(rows)
		if err != nil {
			return nil, fmt.Errorf("listing sessions: %w", err)
		}
		list = append(list, one)
	}
	return list, rows.Err()
}

// CloseSession closes it, revokes its secrets and deletes its rows; closed tells whether this call did it.
func (s *Store) CloseSession(ctx context.Context, id string, now time.Time) (got sessions.Session, closed bool, err error) {
	err = s.write(ctx, func(tx *sql.Tx) error {
		l, err := lockLog(ctx, tx, id)
		if err != nil {
			return err
		}
		closed, err = changed(ctx, tx, `UPDATE sessions SET closed_at = $1, is_current = 0 WHERE id = $2 AND closed_at IS NULL`,
			toMS(now), id)
		if err != nil {
			return fmt.Errorf("closing session: %w", err)
		}
		if err := emptyLog(ctx, tx, id, l); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `UPDATE session_secrets SET revoked_at = $1 WHERE session_id = $2 AND revoked_at IS NULL`,
			toMS(now), id); err != nil {
			return fmt.Errorf("revoking session secrets: %w", err)
		}
		got, err = scanSession(tx.QueryRowContext(ctx, `SELECT `+sessionColumns+` FROM `+sessionsAsTheyAre+` WHERE id = $1`, id))
		return err
	})
	for more := err == nil; more; {
		// What is left when this fails nobody reads, and the next sweep deletes it.
		if more, err = s.purgeLog(ctx, id); err != nil {
			return got, closed, nil
		}
	}
	if err == nil && closed {
		_ = s.emptyJournal(ctx) // it is deleted all the same
	}
	return got, closed, err
}

// TouchSession slides the expiry of an open session.
func (s *Store) TouchSession(ctx context.Context, id string, now, expires time.Time) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE sessions SET last_active_at = $1, expires_at = $2
			WHERE id = $3 AND closed_at IS NULL AND expires_at > $1`, toMS(now), toMS(expires), id)
		return err
	})
}

// SetSessionModel notes the device model of an open session.
func (s *Store) SetSessionModel(ctx context.Context, id, model string, now time.Time) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE sessions SET device_model = $1 WHERE id = $2 AND closed_at IS NULL AND expires_at > $3`,
			model, id, toMS(now))
		return err
	})
}

// AddSessionSecret stores the hash of one more app secret. Of more than sessions.MaxSecrets the oldest go.
func (s *Store) AddSessionSecret(ctx context.Context, sessionID, hash string, now time.Time) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO session_secrets (session_id, hash, created_at) VALUES ($1, $2, $3)`,
			sessionID, hash, toMS(now))
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `DELETE FROM session_secrets WHERE session_id = $1 AND hash IN
			(SELECT hash FROM session_secrets WHERE session_id = $1 AND hash <> $2 ORDER BY created_at DESC, hash LIMIT $3 OFFSET $4)`,
			sessionID, hash, sessions.MaxSecrets, sessions.MaxSecrets-1)
		return err
	})
}

// HasSessionSecret tells whether the session has this secret. Closing revokes secrets, yet who holds one of a closed
// session may learn that it is closed; a revoked secret of an open one is none.
func (s *Store) HasSessionSecret(ctx context.Context, sessionID, hash string) (bool, error) {
	var one int
	err := s.reads.QueryRowContext(ctx, `SELECT 1 FROM session_secrets x JOIN sessions s ON s.id = x.session_id
		WHERE x.session_id = $1 AND x.hash = $2 AND (x.revoked_at IS NULL OR s.closed_at IS NOT NULL)`, sessionID, hash).Scan(&one)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}
