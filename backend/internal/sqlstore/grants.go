package sqlstore

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/grants"
)

// GrantRows gives what differs from the default.
func (s *Store) GrantRows(ctx context.Context, accountID, project string) ([]grants.Row, error) {
	return grantRows(ctx, s.reads, accountID, project)
}

type lister interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

func grantRows(ctx context.Context, q lister, accountID, project string) ([]grants.Row, error) {
	rows, err := q.QueryContext(ctx, `SELECT capability, field, level FROM project_grants WHERE account_id = $1 AND app_id = $2`, accountID, project)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []grants.Row
	for rows.Next() {
		var r grants.Row
		if err := rows.Scan(&r.Capability, &r.Field, &r.Level); err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, rows.Err()
}

// SetGrantRows replaces the rows, or returns grants.ErrNoProject.
func (s *Store) SetGrantRows(ctx context.Context, accountID, project string, rows []grants.Row, tell func([]grants.Row) (audit.Entry, bool)) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		// The no-op update locks the project's row: of two at once the second tells of what the first has set.
		ok, err := changed(ctx, tx, `UPDATE projects SET created_at = created_at WHERE account_id = $1 AND app_id = $2`, accountID, project)
		if err != nil {
			return fmt.Errorf("locking project: %w", err)
		}
		if !ok {
			return grants.ErrNoProject
		}
		was, err := grantRows(ctx, tx, accountID, project)
		if err != nil {
			return fmt.Errorf("reading grants: %w", err)
		}
		e, ok := tell(was)
		if !ok {
			return nil
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM project_grants WHERE account_id = $1 AND app_id = $2`, accountID, project); err != nil {
			return fmt.Errorf("deleting grants: %w", err)
		}
		for _, r := range rows {
			_, err := tx.ExecContext(ctx, `INSERT INTO project_grants (account_id, app_id, capability, field, level) VALUES ($1, $2, $3, $4, $5)`,
				accountID, project, string(r.Capability), r.Field, string(r.Level))
			if err != nil {
				return fmt.Errorf("inserting grant: %w", err)
			}
		}
		return insertAudit(ctx, tx, e)
	})
}
