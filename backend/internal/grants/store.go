package grants

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/db"
	"github.com/service-dev/service/backend/internal/projects"
)

// Store stores grants. Every method is atomic.
type Store struct{ *db.DB }

// NewStore returns a store in d.
func NewStore(d *db.DB) *Store { return &Store{d} }

// selectGrants selects the account's own levels, whose app_id is empty, and the levels of projects.
const selectGrants = `SELECT '' AS app_id, capability, field, level FROM account_grants WHERE account_id = $1
	UNION ALL SELECT app_id, capability, field, level FROM project_grants WHERE account_id = $1`

// GrantRows returns the account's own levels and the levels of one project, or of every project if project is empty.
func (s *Store) GrantRows(ctx context.Context, accountID, project string) ([]Row, error) {
	return grantRows(ctx, s, accountID, project)
}

func grantRows(ctx context.Context, q db.Querier, accountID, project string) ([]Row, error) {
	query, args := selectGrants, []any{accountID}
	if project != "" {
		query, args = query+` AND app_id = $2`, append(args, project)
	}
	return db.All(ctx, q, func(row db.Row) (r Row, err error) {
		err = row.Scan(&r.Project, &r.Capability, &r.Field, &r.Level)
		return r, err
	}, query, args...)
}

// ChangeGrants replaces the rows that GrantRows returns, together with the audit entries, in one transaction.
// change receives the projects whose rows may change: project, or all of the account's projects if project is
// empty. If change returns no entry, ChangeGrants writes nothing. It returns ErrNoProject for an unknown
// project.
func (s *Store) ChangeGrants(
	ctx context.Context, accountID, project string,
	change func(former []Row, projects []string) ([]Row, []audit.Entry),
) error {
	// The lock has two purposes: of two concurrent changes, the second sees the result of the first; and no project is
	// deleted in the meantime.
	return s.WriteAccount(ctx, accountID, func(tx *sql.Tx) error {
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
			statements = append(statements, audit.Statement(e))
		}
		return db.ExecAll(ctx, tx, "save grants", statements...)
	})
}

// grantProjects locks and returns project, or returns all projects of the account if project is empty.
func grantProjects(ctx context.Context, tx *sql.Tx, accountID, project string) ([]string, error) {
	if project != "" {
		return []string{project}, projects.Lock(ctx, tx, ErrNoProject, accountID, project)
	}
	return db.All(ctx, tx, func(row db.Row) (id string, err error) { return id, row.Scan(&id) },
		`SELECT app_id FROM projects WHERE account_id = $1 ORDER BY app_id`, accountID)
}

// grantStatements deletes the rows that are gone or have another level, then inserts the new ones.
func grantStatements(accountID string, former, rows []Row) (statements []db.Statement) {
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

func setOf(rows []Row) map[Row]bool {
	set := make(map[Row]bool, len(rows))
	for _, r := range rows {
		set[r] = true
	}
	return set
}

func deleteGrant(accountID string, r Row) db.Statement {
	if r.Project == "" {
		return db.Stmt(`DELETE FROM account_grants WHERE account_id = $1 AND capability = $2 AND field = $3`,
			accountID, string(r.Capability), r.Field)
	}
	return db.Stmt(`DELETE FROM project_grants WHERE account_id = $1 AND app_id = $2 AND capability = $3 AND field = $4`,
		accountID, r.Project, string(r.Capability), r.Field)
}

func insertGrant(accountID string, r Row) db.Statement {
	if r.Project == "" {
		return db.Stmt(`INSERT INTO account_grants (account_id, capability, field, level) VALUES ($1, $2, $3, $4)`,
			accountID, string(r.Capability), r.Field, string(r.Level))
	}
	return db.Stmt(`INSERT INTO project_grants (account_id, app_id, capability, field, level) VALUES ($1, $2, $3, $4, $5)`,
		accountID, r.Project, string(r.Capability), r.Field, string(r.Level))
}
