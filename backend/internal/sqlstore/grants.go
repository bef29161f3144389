package sqlstore

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/grants"
)

// selectGrants selects the account's own levels, whose app_id is empty, and the levels of projects.
const selectGrants = `SELECT '' AS app_id, capability, field, level FROM account_grants WHERE account_id = $1
	UNION ALL SELECT app_id, capability, field, level FROM project_grants WHERE account_id = $1`

// GrantRows returns the account's own levels and the levels of one project, or of every project if project is empty.
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

// ChangeGrants replaces the rows that GrantRows returns with the rows that change returns, and inserts the audit
// entries. change receives the given project, or all projects of the account. If change returns no entry, ChangeGrants
// writes nothing. It returns grants.ErrNoProject for an unknown project.
func (s *Store) ChangeGrants(
	ctx context.Context, accountID, project string,
	change func(former []grants.Row, projects []string) ([]grants.Row, []audit.Entry),
) error {
	// The lock has two purposes: of two concurrent changes, the second sees the result of the first; and no project is
	// deleted in the meantime.
	return s.writeProjects(ctx, accountID, func(tx *sql.Tx) error {
		projects, err := grantProjects(ctx, tx, accountID, project)
		if err != nil {
			return err
		}
		former, err := grantRows(ctx, tx, accountID, project)
		if err != nil {
			return fmt.Errorf("read grants: %w", err)
		}
		rows, entries := change(former, projects)
		if len(entries) == 0 {
			return nil
		}
		statements := grantStatements(accountID, former, rows)
		for _, e := range entries {
			statements = append(statements, auditStatement(e))
		}
		return execAll(ctx, tx, "save grants", statements...)
	})
}

// grantProjects locks and returns the given project, or returns all projects of the account if it is empty.
func grantProjects(ctx context.Context, tx *sql.Tx, accountID, project string) ([]string, error) {
	if project != "" {
		return []string{project}, lockProject(ctx, tx, grants.ErrNoProject, accountID, project)
	}
	return queryAll(ctx, tx, func(row scanner) (id string, err error) { return id, row.Scan(&id) },
		`SELECT app_id FROM projects WHERE account_id = $1 ORDER BY app_id`, accountID)
}

// grantStatements deletes the rows that are gone or have another level, then inserts the new ones.
func grantStatements(accountID string, former, rows []grants.Row) (statements []statement) {
	had, has := setOf(former), setOf(rows)
	for _, r := range former {
		if !has[r] {
			statements = append(statements, deleteGrant(accountID, r))
		}
	}
	for _, r := range rows {
		if !had[r] {
			statements = append(statements, insertGrant(accountID, r))
		}
	}
	return statements
}

func setOf(rows []grants.Row) map[grants.Row]bool {
	set := make(map[grants.Row]bool, len(rows))
	for _, r := range rows {
		set[r] = true
	}
	return set
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
