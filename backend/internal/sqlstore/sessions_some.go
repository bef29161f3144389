package sqlstore

import (
	"context"
	"fmt"

	"github.com/service-dev/service/backend/internal/sessions"
)

// SomeSessions reads those of the sessions that exist, in any order; a few hundred at most.
func (s *Store) SomeSessions(ctx context.Context, ids []string) ([]sessions.Session, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	args := make([]any, 0, len(ids))
	for _, id := range ids {
		args = append(args, id)
	}
	rows, err := s.reads.QueryContext(ctx, `SELECT `+sessionColumns+` FROM `+sessionsAsTheyAre+` WHERE id IN `+list(len(ids), 1), args...)
	if err != nil {
		return nil, fmt.Errorf("reading sessions: %w", err)
	}
	defer rows.Close()
	var found []sessions.Session
	for rows.Next() {
		one, err := scanSession(rows)
		if err != nil {
			return nil, fmt.Errorf("reading sessions: %w", err)
		}
		found = append(found, one)
	}
	return found, rows.Err()
}
