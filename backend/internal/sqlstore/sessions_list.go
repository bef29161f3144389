package sqlstore

import (
	"context"
	"strconv"
	"time"

	"github.com/service-dev/service/backend/internal/sessions"
)

// ListSessions lists open sessions of an account, newest first. The inner query selects by an index those that have not
// expired: without it, every session that the account ever had would be read.
func (s *Store) ListSessions(
	ctx context.Context, accountID string, l sessions.Listing, now time.Time,
) ([]sessions.Session, error) {
	condition, args := `id IN (SELECT id FROM sessions WHERE account_id = $1 AND expires_at > $2)
		AND closed_at IS NULL AND expires_at > $2`, []any{accountID, toMS(now)}
	if l.Project != "" {
		args = append(args, l.Project)
		condition += ` AND app_id = $` + strconv.Itoa(len(args))
	}
	if l.After != "" {
		args = append(args, l.After)
		condition += ` AND (created_at, id) < (SELECT created_at, id FROM sessions WHERE account_id = $1 AND id = $` +
			strconv.Itoa(len(args)) + `)`
	}
	return listSessions(ctx, s.reads, condition+` ORDER BY created_at DESC, id DESC LIMIT `+strconv.Itoa(l.Limit), args...)
}

// Milestones returns what the account has done so far.
func (s *Store) Milestones(ctx context.Context, accountID string) (m sessions.Milestones, err error) {
	if m.Opened, err = hasRow(ctx, s.reads, `SELECT 1 FROM sessions WHERE account_id = $1 LIMIT 1`, accountID); err != nil {
		return m, err
	}
	m.AppSeen, err = hasRow(ctx, s.reads,
		`SELECT 1 FROM sessions WHERE account_id = $1 AND app_at > 0 LIMIT 1`, accountID)
	return m, err
}
