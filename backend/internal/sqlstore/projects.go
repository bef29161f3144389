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

// lockProjects makes everything that creates, merges or deletes projects of an account wait for one another.
func lockProjects(ctx context.Context, tx *sql.Tx, accountID string) error {
	if _, err := tx.ExecContext(ctx, `UPDATE accounts SET state = state WHERE id = $1`, accountID); err != nil {
		return fmt.Errorf("locking account: %w", err)
	}
	return nil
}

const projectIDQuery = `SELECT app_id FROM projects WHERE account_id = $1 AND app_id = $2
	UNION ALL SELECT app_id FROM project_aliases WHERE account_id = $1 AND alias = $2`

type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// resolveProject gives the id itself or the one it was merged into, or returns projects.ErrNotFound.
func resolveProject(ctx context.Context, q querier, accountID, id string) (string, error) {
	var found string
	err := q.QueryRowContext(ctx, projectIDQuery, accountID, id).Scan(&found)
	if errors.Is(err, sql.ErrNoRows) {
		return "", projects.ErrNotFound
	}
	if err != nil {
		return "", fmt.Errorf("reading project: %w", err)
	}
	return found, nil
}

// ensureProject makes the project of an account unless it is there, and gives its real id, which differs when appID was
// merged into another. It returns projects.ErrTooManyProjects. Until the transaction ends no merge or deletion gets in.
func ensureProject(ctx context.Context, tx *sql.Tx, accountID, appID string, by audit.Actor, now time.Time) (string, error) {
	if err := lockProjects(ctx, tx, accountID); err != nil {
		return "", err
	}
	id, err := resolveProject(ctx, tx, accountID, appID)
	if !errors.Is(err, projects.ErrNotFound) {
		return id, err
	}
	var n int
	if err := tx.QueryRowContext(ctx, `SELECT COUNT(*) FROM projects WHERE account_id = $1`, accountID).Scan(&n); err != nil {
		return "", fmt.Errorf("counting projects: %w", err)
	}
	if n >= projects.MaxProjects {
		return "", projects.ErrTooManyProjects
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO projects (account_id, app_id, created_at) VALUES ($1, $2, $3)`, accountID, appID, toMS(now))
	if err != nil {
		return "", fmt.Errorf("inserting project: %w", err)
	}
	return appID, insertAudit(ctx, tx, audit.New(now, accountID, by, "project.created", appID, appID))
}

// ProjectID gives the id itself, the one it was merged into, or projects.ErrNotFound.
func (s *Store) ProjectID(ctx context.Context, accountID, id string) (string, error) {
	return resolveProject(ctx, s.reads, accountID, id)
}

// Projects lists those of an account by id, or the one with that id unless it is empty.
func (s *Store) Projects(ctx context.Context, accountID, id string, now time.Time) ([]projects.Project, error) {
	one, args := "", []any{accountID, toMS(now)}
	if id != "" {
		one, args = "AND app_id = $3", append(args, id)
	}
	rows, err := s.reads.QueryContext(ctx, `SELECT p.app_id, p.display_name, p.platforms, p.created_at, k.live, k.used, s.open, s.active
		FROM (SELECT * FROM projects WHERE account_id = $1 `+one+`) p
		LEFT JOIN (SELECT app_id, SUM(CASE WHEN revoked_at IS NULL THEN 1 ELSE 0 END) AS live, MAX(last_used_at) AS used
			FROM project_keys WHERE account_id = $1 `+one+` GROUP BY app_id) k ON k.app_id = p.app_id
		LEFT JOIN (SELECT app_id, SUM(CASE WHEN closed_at IS NULL AND expires_at > $2 THEN 1 ELSE 0 END) AS open, MAX(last_active_at) AS active
			FROM `+sessionsAsTheyAre+` WHERE account_id = $1 `+one+` GROUP BY app_id) s ON s.app_id = p.app_id
		ORDER BY p.app_id`, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []projects.Project
	for rows.Next() {
		var p projects.Project
		var platforms string
		var created int64
		var keys, used, open, active sql.NullInt64
		if err := rows.Scan(&p.ID, &p.DisplayName, &platforms, &created, &keys, &used, &open, &active); err != nil {
			return nil, err
		}
		p = named(p, platforms)
		p.CreatedAt, p.Keys, p.OpenSessions = fromMS(created), int(keys.Int64), int(open.Int64)
		if used.Int64 > active.Int64 {
			active = used
		}
		p.LastActiveAt = fromNull(active)
		all = append(all, p)
	}
	return all, rows.Err()
}

// named fills in what the columns leave to the default.
func named(p projects.Project, platforms string) projects.Project {
	if p.DisplayName == "" {
		p.DisplayName = projects.DefaultName(p.ID)
	}
	if platforms != "" {
		p.Platforms = strings.Split(platforms, ",")
	}
	return p
}

// readProject reads name and platforms in a transaction that holds the account's lock.
func readProject(ctx context.Context, tx *sql.Tx, accountID, id string) (projects.Project, error) {
	p := projects.Project{ID: id}
	var platforms string
	var created int64
	err := tx.QueryRowContext(ctx, `SELECT display_name, platforms, created_at FROM projects WHERE account_id = $1 AND app_id = $2`, accountID, id).
		Scan(&p.DisplayName, &platforms, &created)
	if err != nil {
		return projects.Project{}, missing(err, projects.ErrNotFound)
	}
	p.CreatedAt = fromMS(created)
	return named(p, platforms), nil
}

func saveProject(ctx context.Context, tx *sql.Tx, accountID string, p projects.Project) error {
	if p.DisplayName == projects.DefaultName(p.ID) {
		p.DisplayName = ""
	}
	_, err := tx.ExecContext(ctx, `UPDATE projects SET display_name = $1, platforms = $2, created_at = $3 WHERE account_id = $4 AND app_id = $5`,
		p.DisplayName, strings.Join(p.Platforms, ","), toMS(p.CreatedAt), accountID, p.ID)
	if err != nil {
		return fmt.Errorf("updating project: %w", err)
	}
	return nil
}

// ChangeProject stores what change makes of name and platforms, with its entry.
func (s *Store) ChangeProject(ctx context.Context, accountID, id string, change func(*projects.Project) (audit.Entry, bool)) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		if err := lockProjects(ctx, tx, accountID); err != nil {
			return err
		}
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
