package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/credentials"
	"github.com/service-dev/service/backend/internal/projects"
)

// MergeProjects moves everything that project src owns to dst and leaves an alias. Either may be an alias.
func (s *Store) MergeProjects(ctx context.Context, accountID, src, dst string, e audit.Entry) error {
	return s.writeProjects(ctx, accountID, func(tx *sql.Tx) error {
		from, into, err := readBoth(ctx, tx, resolveProject, accountID, src, dst)
		if err != nil {
			return err
		}
		if from == into {
			return projects.ErrSameProject
		}
		// Lock in the same order as model calls and app events do.
		if err := lockBalance(ctx, tx, accountID); err != nil {
			return err
		}
		numbers, err := lockBothAnalytics(ctx, tx, accountID, from, into)
		if err != nil {
			return err
		}
		if err := s.lockProjectRows(ctx, tx, accountID, from, into); err != nil {
			return err
		}
		if err := moveProject(ctx, tx, accountID, from, into, e.ID); err != nil {
			return err
		}
		if err := mergeCredit(ctx, tx, accountID, from, into); err != nil {
			return err
		}
		if err := mergeAnalytics(ctx, tx, numbers[from], numbers[into]); err != nil {
			return err
		}
		if err := uniteProjects(ctx, tx, accountID, from, into); err != nil {
			return err
		}
		if err := deleteProject(ctx, tx, accountID, from); err != nil {
			return err
		}
		e := e // the transaction may run again
		e.Project = into
		return execAll(ctx, tx, "insert alias",
			stmt(`INSERT INTO project_aliases (account_id, alias, app_id, created_at) VALUES ($1, $2, $3, $4)`,
				accountID, from, into, toMS(e.At)),
			auditStatement(e))
	})
}

// readBoth calls read for two projects of the account and returns both results.
func readBoth[T any](
	ctx context.Context, q querier, read func(_ context.Context, _ querier, accountID, id string) (T, error),
	accountID, from, into string,
) (ofFrom, ofInto T, err error) {
	if ofFrom, err = read(ctx, q, accountID, from); err == nil {
		ofInto, err = read(ctx, q, accountID, into)
	}
	return ofFrom, ofInto, err
}

// lockProjectRows prevents insertions of rows that reference the projects' rows, and counts of their calls, until the
// transaction ends. SQLite has a single writer and needs no lock.
func (s *Store) lockProjectRows(ctx context.Context, tx *sql.Tx, accountID string, ids ...string) error {
	if s.engine != "postgres" {
		return nil
	}
	for _, id := range slices.Sorted(slices.Values(ids)) {
		_, err := queryOne(ctx, tx, projects.ErrNotFound, value[int],
			`SELECT 1 FROM projects WHERE account_id = $1 AND app_id = $2 FOR UPDATE`, accountID, id)
		if err != nil {
			return err
		}
	}
	return nil
}

// moveProject moves the rows of one project to another. If both have a current session for a link and platform, the
// session of into stays current. If both have a config, the config of into is kept, and changes to the other can no
// longer be undone.
func moveProject(ctx context.Context, tx *sql.Tx, accountID, from, into, by string) error {
	if err := markAllUndone(ctx, tx, accountID, from, by); err != nil {
		return err
	}
	return moveRows(ctx, tx, accountID, from, into,
		`UPDATE project_keys SET app_id = $3 WHERE account_id = $1 AND app_id = $2`,
		`UPDATE sessions SET is_current = 0 WHERE account_id = $1 AND app_id = $2 AND is_current = 1
			AND EXISTS (SELECT 1 FROM sessions x WHERE x.account_id = $1 AND x.app_id = $3
				AND x.link_id = sessions.link_id AND x.platform = sessions.platform AND x.is_current = 1)`,
		`UPDATE sessions SET app_id = $3 WHERE account_id = $1 AND app_id = $2`,
		`UPDATE project_aliases SET app_id = $3 WHERE account_id = $1 AND app_id = $2`,
		`UPDATE audit SET app_id = $3 WHERE account_id = $1 AND app_id = $2`,
		`UPDATE credentials SET app_id = $3 WHERE account_id = $1 AND app_id = $2
			AND NOT EXISTS (SELECT 1 FROM credentials x
				WHERE x.account_id = $1 AND x.app_id = $3 AND x.provider = credentials.provider)
			AND NOT EXISTS (SELECT 1 FROM local_servers x
				WHERE x.account_id = $1 AND x.app_id = $3 AND '`+credentials.ServerPrefix+`' || x.id = credentials.provider)`,
		`UPDATE connection_pages SET app_id = $3 WHERE account_id = $1 AND app_id = $2 AND NOT EXISTS
			(SELECT 1 FROM connection_pages x WHERE x.account_id = $1 AND x.app_id = $3)`,
		`UPDATE assistant_configs SET app_id = $3 WHERE account_id = $1 AND app_id = $2 AND NOT EXISTS
			(SELECT 1 FROM assistant_configs x WHERE x.account_id = $1 AND x.app_id = $3)`)
}

// moveRows runs statements whose parameters are the account and both project IDs.
func moveRows(ctx context.Context, tx *sql.Tx, accountID, from, into string, statements ...string) error {
	for _, statement := range statements {
		if err := execTx(ctx, tx, "move project", statement, accountID, from, into); err != nil {
			return err
		}
	}
	return nil
}

// markAllUndone marks all changes to a project's configs as undone by the entry that ends the project.
func markAllUndone(ctx context.Context, tx *sql.Tx, accountID, project, by string) error {
	return execTx(ctx, tx, "mark audit entries undone", `UPDATE audit SET undone_by = $1
		WHERE account_id = $2 AND app_id = $3 AND before IS NOT NULL AND undone_by IS NULL`, by, accountID, project)
}

// uniteProjects adds the platforms of project from to project into, and sets its creation time to the earlier one.
func uniteProjects(ctx context.Context, tx *sql.Tx, accountID, from, into string) error {
	old, p, err := readBoth(ctx, tx, readProject, accountID, from, into)
	if err != nil {
		return err
	}
	both := slices.Concat(p.Platforms, old.Platforms)
	p.Platforms = slices.DeleteFunc(projects.Platforms(), func(one string) bool { return !slices.Contains(both, one) })
	if old.CreatedAt.Before(p.CreatedAt) {
		p.CreatedAt = old.CreatedAt
	}
	return saveProject(ctx, tx, accountID, p)
}

// deleteProject deletes a project's row and everything that references it.
func deleteProject(ctx context.Context, tx *sql.Tx, accountID, id string) error {
	return mustChange(ctx, tx, projects.ErrNotFound, "delete project",
		`DELETE FROM projects WHERE account_id = $1 AND app_id = $2`, accountID, id)
}

// DeleteProject deletes a project and everything that belongs to it, and returns the IDs of its open sessions.
func (s *Store) DeleteProject(ctx context.Context, accountID, id string, e audit.Entry) (open []string, err error) {
	err = s.writeProjects(ctx, accountID, func(tx *sql.Tx) error {
		open, err = queryAll(ctx, tx, value[string], `SELECT id FROM sessions
			WHERE account_id = $1 AND app_id = $2 AND closed_at IS NULL AND expires_at > $3`, accountID, id, toMS(e.At))
		if err != nil {
			return fmt.Errorf("list the project's sessions: %w", err)
		}
		if err := markAllUndone(ctx, tx, accountID, id, e.ID); err != nil {
			return err
		}
		if err := subtractLogs(ctx, tx, accountID, id); err != nil {
			return err
		}
		if err := deleteProject(ctx, tx, accountID, id); err != nil {
			return err
		}
		return insertAudit(ctx, tx, e)
	})
	return open, err
}
