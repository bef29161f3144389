package sqlstore

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/grants"
)

// GrantRows returns the grants that differ from their default.
func (s *Store) GrantRows(ctx context.Context, accountID, project string) ([]grants.Row, error) {
	return grantRows(ctx, s.reads, accountID, project)
}

func grantRows(ctx context.Context, q querier, accountID, project string) ([]grants.Row, error) {
	return queryAll(ctx, q, func(row scanner) (r grants.Row, err error) {
		err = row.Scan(&r.Capability, &r.Field, &r.Level)
		return r, err
	}, `SELECT capability, field, level FROM project_grants WHERE account_id = $1 AND app_id = $2`, accountID, project)
}

// SetGrantRows replaces the rows and inserts the audit entry that describe returns for the former rows. If describe
// returns false, nothing is written. It returns grants.ErrNoProject for an unknown project.
func (s *Store) SetGrantRows(
	ctx context.Context, accountID, project string, rows []grants.Row,
	describe func(former []grants.Row) (audit.Entry, bool),
) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		// If two changes are concurrent, the second sees the result of the first.
		if err := lockProject(ctx, tx, grants.ErrNoProject, accountID, project); err != nil {
			return err
		}
		former, err := grantRows(ctx, tx, accountID, project)
		if err != nil {
			return fmt.Errorf("read grants: %w", err)
		}
		e, differs := describe(former)
		if !differs {
			return nil
		}
		statements := []statement{
			stmt(`DELETE FROM project_grants WHERE account_id = $1 AND app_id = $2`, accountID, project),
		}
		for _, r := range rows {
			statements = append(statements, stmt(`INSERT INTO project_grants (account_id, app_id, capability, field, level)
				VALUES ($1, $2, $3, $4, $5)`, accountID, project, string(r.Capability), r.Field, string(r.Level)))
		}
		return execAll(ctx, tx, "save grants", append(statements, auditStatement(e))...)
	})
}
