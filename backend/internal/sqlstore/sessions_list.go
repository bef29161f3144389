package sqlstore

import (
	"context"
	"strconv"
	"time"

	"github.com/service-dev/service/backend/internal/sessions"
)

// unexpired selects the open sessions of account $1 at the time $2. The inner query uses an index to select the
// sessions that have not expired; without it, every session that the account ever had would be read.
const unexpired = `id IN (SELECT id FROM sessions WHERE account_id = $1 AND expires_at > $2)
	AND closed_at IS NULL AND expires_at > $2`

// ListSessions lists open sessions of an account, last used first.
func (s *Store) ListSessions(
	ctx context.Context, accountID string, sel sessions.Selection, now time.Time,
) ([]sessions.Session, error) {
	condition, args := unexpired, []any{accountID, toMS(now)}
	if sel.Project != "" {
		args = append(args, sel.Project)
		condition += ` AND app_id = $` + strconv.Itoa(len(args))
	}
	if len(sel.Without) > 0 {
		condition += ` AND id NOT IN ` + placeholders(len(sel.Without), len(args)+1)
		args = append(args, anys(sel.Without)...)
	}
	if p := sel.Before; p != nil {
		args = append(args, toMS(p.LastActive), p.ID)
		condition += ` AND (last_active_at, id) < ($` + strconv.Itoa(len(args)-1) + `, $` + strconv.Itoa(len(args)) + `)`
	}
	return listSessions(ctx, s.reads, condition+` ORDER BY last_active_at DESC, id DESC LIMIT `+strconv.Itoa(sel.Limit),
		args...)
}

// Milestones returns the milestones that the account has reached.
func (s *Store) Milestones(ctx context.Context, accountID string) (m sessions.Milestones, err error) {
	if m.Opened, err = hasRow(ctx, s.reads, `SELECT 1 FROM sessions WHERE account_id = $1 LIMIT 1`, accountID); err != nil {
		return m, err
	}
	m.AppSeen, err = hasRow(ctx, s.reads,
		`SELECT 1 FROM sessions WHERE account_id = $1 AND app_at > 0 LIMIT 1`, accountID)
	return m, err
}
