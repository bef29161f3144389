package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/projects"
)

// writeProjects is like write, but locks the account's projects first.
func (s *Store) writeProjects(ctx context.Context, accountID string, f func(tx *sql.Tx) error) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		if err := lockProjects(ctx, tx, accountID); err != nil {
			return err
		}
		return f(tx)
	})
}

// lockProjects blocks other transactions that create, merge or delete projects of the account.
func lockProjects(ctx context.Context, tx *sql.Tx, accountID string) error {
	return execTx(ctx, tx, "lock account", `UPDATE accounts SET state = state WHERE id = $1`, accountID)
}

// lockProject blocks other changes to a project's row, including its deletion. It returns none for an unknown project.
func lockProject(ctx context.Context, tx *sql.Tx, none error, accountID, project string) error {
	return mustChange(ctx, tx, none, "lock project",
		`UPDATE projects SET created_at = created_at WHERE account_id = $1 AND app_id = $2`, accountID, project)
}

const projectIDQuery = `SELECT app_id FROM projects WHERE account_id = $1 AND app_id = $2
	UNION ALL SELECT app_id FROM project_aliases WHERE account_id = $1 AND alias = $2`

// resolveProject returns the ID itself, the ID it was merged into, or projects.ErrNotFound.
func resolveProject(ctx context.Context, q querier, accountID, id string) (string, error) {
	return queryOne(ctx, q, projects.ErrNotFound, value[string], projectIDQuery, accountID, id)
}

// ensureProject creates a project of an account if it does not exist. It returns the real ID, which differs if appID
// was merged into another project, or projects.ErrTooManyProjects. It blocks merges and deletions until the
// transaction ends.
func ensureProject(
	ctx context.Context, tx *sql.Tx, accountID, appID string, by audit.Actor, now time.Time,
) (string, error) {
	if err := lockProjects(ctx, tx, accountID); err != nil {
		return "", err
	}
	id, err := resolveProject(ctx, tx, accountID, appID)
	if !errors.Is(err, projects.ErrNotFound) {
		return id, err
	}
	n, err := queryValue[int](ctx, tx, `SELECT COUNT(*) FROM projects WHERE account_id = $1`, accountID)
	if err != nil {
		return "", fmt.Errorf("count projects: %w", err)
	}
	if n >= projects.MaxProjects {
		return "", projects.ErrTooManyProjects
	}
	return appID, execAll(ctx, tx, "insert project",
		stmt(`INSERT INTO projects (account_id, app_id, created_at) VALUES ($1, $2, $3)`, accountID, appID, toMS(now)),
		auditStatement(audit.New(now, accountID, by, "project.created", appID, appID)))
}

// ProjectID returns the ID itself, the ID it was merged into, or projects.ErrNotFound.
func (s *Store) ProjectID(ctx context.Context, accountID, id string) (string, error) {
	return resolveProject(ctx, s.reads, accountID, id)
}

// Projects lists an account's projects by ID, or only the given project if id is not empty. It reads only
// the sessions that have not expired, and one index entry for the latest activity.
func (s *Store) Projects(ctx context.Context, accountID, id string, now time.Time) ([]projects.Project, error) {
	one, args := "", []any{accountID, toMS(now)}
	if id != "" {
		one, args = "AND app_id = $3", append(args, id)
	}
	return queryAll(ctx, s.reads, func(row scanner) (p projects.Project, err error) {
		var platforms string
		var keyUsed time.Time
		err = row.Scan(&p.ID, &p.DisplayName, &platforms, intoTime(&p.CreatedAt), &p.Keys, intoTime(&keyUsed),
			&p.OpenSessions, intoTime(&p.LastActiveAt))
		if keyUsed.After(p.LastActiveAt) {
			p.LastActiveAt = keyUsed
		}
		return withDefaults(p, platforms), err
	}, `SELECT p.app_id, p.display_name, p.platforms, p.created_at, COALESCE(k.live, 0), k.used,
			COALESCE(s.open, 0), (SELECT MAX(last_active_at) FROM sessions WHERE account_id = $1 AND app_id = p.app_id)
		FROM (SELECT * FROM projects WHERE account_id = $1 `+one+`) p
		LEFT JOIN (SELECT app_id, SUM(CASE WHEN revoked_at IS NULL THEN 1 ELSE 0 END) AS live, MAX(last_used_at) AS used
			FROM project_keys WHERE account_id = $1 `+one+` GROUP BY app_id) k ON k.app_id = p.app_id
		LEFT JOIN (SELECT app_id, COUNT(*) AS open FROM `+effectiveSessions+`
			WHERE `+unexpired+` `+one+` GROUP BY app_id) s ON s.app_id = p.app_id
		ORDER BY p.app_id`, args...)
}

// withDefaults replaces empty columns with their defaults.
func withDefaults(p projects.Project, platforms string) projects.Project {
	if p.DisplayName == "" {
		p.DisplayName = projects.DefaultName(p.ID)
	}
	if platforms != "" {
		p.Platforms = strings.Split(platforms, ",")
	}
	return p
}

// readProject returns the columns of a project's row, in a transaction that holds the account's lock.
func readProject(ctx context.Context, q querier, accountID, id string) (projects.Project, error) {
	return queryOne(ctx, q, projects.ErrNotFound, func(row scanner) (projects.Project, error) {
		p := projects.Project{ID: id}
		var platforms string
		err := row.Scan(&p.DisplayName, &platforms, intoTime(&p.CreatedAt))
		return withDefaults(p, platforms), err
	}, `SELECT display_name, platforms, created_at FROM projects WHERE account_id = $1 AND app_id = $2`, accountID, id)
}

func saveProject(ctx context.Context, tx *sql.Tx, accountID string, p projects.Project) error {
	if p.DisplayName == projects.DefaultName(p.ID) {
		p.DisplayName = ""
	}
	return execTx(ctx, tx, "save project", `UPDATE projects SET display_name = $1, platforms = $2, created_at = $3
		WHERE account_id = $4 AND app_id = $5`,
		p.DisplayName, strings.Join(p.Platforms, ","), toMS(p.CreatedAt), accountID, p.ID)
}

// ChangeProject stores the name and platforms that change returns, with its audit entry. If change returns false, it
// writes nothing.
func (s *Store) ChangeProject(
	ctx context.Context, accountID, id string, change func(*projects.Project) (audit.Entry, bool),
) error {
	return s.writeProjects(ctx, accountID, func(tx *sql.Tx) error {
		p, err := readProject(ctx, tx, accountID, id)
		if err != nil {
			return err
		}
		e, ok := change(&p)
		if !ok {
			return nil
		}
		if err := saveProject(ctx, tx, accountID, p); err != nil {
			return err
		}
		return insertAudit(ctx, tx, e)
	})
}
