package sqlstore

import (
	"context"
	"database/sql"
	"time"

	"github.com/service-dev/service/backend/internal/sessions"
)

// SetAssistantScript replaces the script of a session. It returns sessions.ErrClosed or sessions.ErrNotFound on
// failure.
func (s *Store) SetAssistantScript(ctx context.Context, id, script string) error {
	return s.writeOpen(ctx, id, "set assistant script", stmt(`INSERT INTO session_scripts (session_id, body)
		VALUES ($1, $2)
		ON CONFLICT (session_id) DO UPDATE SET body = excluded.body`, id, script))
}

// AssistantScript returns the script of an open session, or "" if it has none. It returns sessions.ErrClosed for any
// other session.
func (s *Store) AssistantScript(ctx context.Context, id string, now time.Time) (string, error) {
	script, err := queryValue[string](ctx, s.reads, `SELECT COALESCE((SELECT body FROM session_scripts WHERE session_id = $1),
		'') FROM `+effectiveSessions+` WHERE id = $1 AND closed_at IS NULL AND expires_at > $2`, id, toMS(now))
	return script, replaceNoRows(err, sessions.ErrClosed)
}

// AddGatewayToken stores the hash of a token that is valid until ends. It deletes the session's expired tokens, and the
// oldest ones beyond sessions.MaxSecrets.
func (s *Store) AddGatewayToken(ctx context.Context, id, hash string, now, ends time.Time) error {
	return s.writeOpen(ctx, id, "insert gateway token",
		stmt(`INSERT INTO session_gateway_tokens (hash, session_id, expires_at) VALUES ($1, $2, $3)`, hash, id, toMS(ends)),
		stmt(`DELETE FROM session_gateway_tokens WHERE session_id = $1 AND (expires_at <= $2 OR hash IN
			(SELECT hash FROM session_gateway_tokens WHERE session_id = $1 AND hash <> $3
				ORDER BY expires_at DESC, hash LIMIT $4 OFFSET $5))`,
			id, toMS(now), hash, sessions.MaxSecrets, sessions.MaxSecrets-1))
}

// SessionByGatewayToken returns the open session of a valid token, or sessions.ErrBadSecret.
func (s *Store) SessionByGatewayToken(ctx context.Context, hash string, now time.Time) (sessions.Session, error) {
	return queryOne(ctx, s.reads, sessions.ErrBadSecret, scanSession, selectSessions+`closed_at IS NULL AND expires_at > $2
		AND id = (SELECT session_id FROM session_gateway_tokens WHERE hash = $1 AND expires_at > $2)`, hash, toMS(now))
}

// writeOpen changes data of a session that is not closed. It locks the session's row, so that no data is added while
// the session is being closed, and so that concurrent calls do not delete its rows in different orders.
func (s *Store) writeOpen(ctx context.Context, id, what string, statements ...statement) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		l, err := lockLog(ctx, tx, id)
		switch {
		case err != nil:
			return err
		case l.closed:
			return sessions.ErrClosed
		}
		return execAll(ctx, tx, what, statements...)
	})
}

// endGateway deletes the assistant script and the gateway tokens of a session.
func endGateway(ctx context.Context, tx *sql.Tx, id string) error {
	return execAll(ctx, tx, "delete gateway of session",
		stmt(`DELETE FROM session_scripts WHERE session_id = $1`, id),
		stmt(`DELETE FROM session_gateway_tokens WHERE session_id = $1`, id))
}

// sweepGateways deletes expired tokens, and the scripts of sessions that were closed or inactive since idle.
func (s *Store) sweepGateways(ctx context.Context, idle time.Time) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		return execAll(ctx, tx, "sweep gateways of sessions",
			stmt(`DELETE FROM session_scripts WHERE EXISTS (SELECT 1 FROM sessions s
				WHERE s.id = session_scripts.session_id AND (s.closed_at IS NOT NULL OR s.last_active_at < $1))`, toMS(idle)),
			stmt(`DELETE FROM session_gateway_tokens WHERE expires_at < $1`, toMS(idle)))
	})
}
