package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/grants"
)

// selectGrants selects the account's own levels, whose app_id is empty, and those of projects.
const selectGrants = `SELECT '' AS app_id, capability, field, level FROM account_grants WHERE account_id = $1
	UNION ALL SELECT app_id, capability, field, level FROM project_grants WHERE account_id = $1`

// GrantRows returns the account's own levels and those of one project, or of every project if project is empty.
func (s *Store) GrantRows(ctx context.Context, accountID, project string) ([]grants.Row, error) {
	return grantRows(ctx, s.reads, accountID, project)
}

func grantRows(ctx context.Context, q querier, accountID, project string) ([]grants.Row, error) {
	query, args := selectGrants, []any{accountID}
	if project != "" {
		query, args = query+` AND app_id = $2`, append(args, project)
	}
	return queryAll(ctx, q, func(row scanner) (r grants.Row, err error) {
		err = row.Scan(&r.Project, &r.Capability, &r.Field, &r.Level)
		return r, err
	}, query, args...)
}

// ChangeGrants replaces the rows that GrantRows returns by those that change returns, and inserts the audit entries.
// Without entries, nothing is written. It returns grants.ErrNoProject for an unknown project.
func (s *Store) ChangeGrants(
	ctx context.Context, accountID, project string, change func(former []grants.Row) ([]grants.Row, []audit.Entry),
) error {
	// The lock serves two purposes: of two concurrent changes, the second sees the result of the first; and no project
	// is deleted meanwhile.
	return s.writeProjects(ctx, accountID, func(tx *sql.Tx) error {
		if project != "" {
			if err := lockProject(ctx, tx, grants.ErrNoProject, accountID, project); err != nil {
				return err
			}
		}
		former, err := grantRows(ctx, tx, accountID, project)
		if err != nil {
			return fmt.Errorf("read grants: %w", err)
		}
		rows, entries := change(former)
		if len(entries) == 0 {
			return nil
		}
		var statements []statement
		for _, r := range former {
			if !slices.Contains(rows, r) {
				statements = append(statements, deleteGrant(accountID, r))
			}
		}
		for _, r := range rows {
			if !slices.Contains(former, r) {
				statements = append(statements, insertGrant(accountID, r))
			}
		}
		for _, e := range entries {
			statements = append(statements, auditStatement(e))
		}
		return execAll(ctx, tx, "save grants", statements...)
	})
}

func deleteGrant(accountID string, r grants.Row) statement {
	if r.Project == "" {
		return stmt(`DELETE FROM account_grants WHERE account_id = $1 AND capability = $2 AND field = $3`,
			accountID, string(r.Capability), r.Field)
	}
	return stmt(`DELETE FROM project_grants WHERE account_id = $1 AND app_id = $2 AND capability = $3 AND field = $4`,
		accountID, r.Project, string(r.Capability), r.Field)
}

func insertGrant(accountID string, r grants.Row) statement {
	if r.Project == "" {
		return stmt(`INSERT INTO account_grants (account_id, capability, field, level) VALUES ($1, $2, $3, $4)`,
			accountID, string(r.Capability), r.Field, string(r.Level))
	}
	return stmt(`INSERT INTO project_grants (account_id, app_id, capability, field, level) VALUES ($1, $2, $3, $4, $5)`,
		accountID, r.Project, string(r.Capability), r.Field, string(r.Level))
}
