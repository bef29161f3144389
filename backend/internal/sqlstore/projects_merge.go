package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/projects"
)

// MergeProjects moves what the project src owns to dst and leaves an alias. Either may be named by an alias.
func (s *Store) MergeProjects(ctx context.Context, accountID, src, dst string, e audit.Entry) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		if err := lockProjects(ctx, tx, accountID); err != nil {
			return err
		}
		from, err := resolveProject(ctx, tx, accountID, src)
		if err != nil {
			return err
		}
		into, err := resolveProject(ctx, tx, accountID, dst)
		if err != nil {
			return err
		}
		if from == into {
			return projects.ErrSameProject
		}
		if err := s.shutProject(ctx, tx, accountID, from); err != nil {
			return err
		}
		if err := moveProject(ctx, tx, accountID, from, into, e.ID); err != nil {
			return err
		}
		if err := mergeAnalytics(ctx, tx, accountID, from, into); err != nil {
			return err
		}
		if err := uniteProjects(ctx, tx, accountID, from, into); err != nil {
			return err
		}
		if err := dropProject(ctx, tx, accountID, from); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO project_aliases (account_id, alias, app_id, created_at) VALUES ($1, $2, $3, $4)`,
			accountID, from, into, toMS(e.At))
		if err != nil {
			return fmt.Errorf("inserting alias: %w", err)
		}
		e := e // the transaction may run again
		e.Project = into
		return insertAudit(ctx, tx, e)
	})
}

// shutProject keeps others from adding anything below a project until the transaction ends: whatever refers to its row
// waits for it. SQLite has one writer, so nobody else is there.
func (s *Store) shutProject(ctx context.Context, tx *sql.Tx, accountID, id string) error {
	if s.engine != "postgres" {
		return nil
	}
	var one int
	err := tx.QueryRowContext(ctx, `SELECT 1 FROM projects WHERE account_id = $1 AND app_id = $2 FOR UPDATE`, accountID, id).Scan(&one)
	if err != nil {
		return fmt.Errorf("locking project: %w", missing(err, projects.ErrNotFound))
	}
	return nil
}

// moveProject points to into what outlives from. Of two current sessions of a link and platform that of into stays
// current. Changes of the dropped configs can no longer be undone.
func moveProject(ctx context.Context, tx *sql.Tx, accountID, from, into, by string) error {
	if err := sealAudit(ctx, tx, accountID, from, by); err != nil {
		return err
	}
	for _, statement := range []string{
		`UPDATE project_keys SET app_id = $3 WHERE account_id = $1 AND app_id = $2`,
		`UPDATE sessions SET is_current = 0 WHERE account_id = $1 AND app_id = $2 AND is_current = 1 AND EXISTS (SELECT 1 FROM sessions x
			WHERE x.account_id = $1 AND x.app_id = $3 AND x.link_id = sessions.link_id AND x.platform = sessions.platform AND x.is_current = 1)`,
		`UPDATE sessions SET app_id = $3 WHERE account_id = $1 AND app_id = $2`,
		`UPDATE project_aliases SET app_id = $3 WHERE account_id = $1 AND app_id = $2`,
		`UPDATE audit SET app_id = $3 WHERE account_id = $1 AND app_id = $2`,
		`UPDATE credentials SET app_id = $3 WHERE account_id = $1 AND app_id = $2 AND NOT EXISTS (SELECT 1 FROM credentials x
			WHERE x.account_id = $1 AND x.app_id = $3 AND x.provider = credentials.provider)`,
		`UPDATE connection_pages SET app_id = $3 WHERE account_id = $1 AND app_id = $2 AND NOT EXISTS (SELECT 1 FROM connection_pages x
			WHERE x.account_id = $1 AND x.app_id = $3)`,
		`UPDATE assistant_configs SET app_id = $3 WHERE account_id = $1 AND app_id = $2 AND NOT EXISTS (SELECT 1 FROM assistant_configs x
			WHERE x.account_id = $1 AND x.app_id = $3)`,
	} {
		if _, err := tx.ExecContext(ctx, statement, accountID, from, into); err != nil {
			return fmt.Errorf("moving what a project owns: %w", err)
		}
	}
	return nil
}

// sealAudit marks changes of a project's configs as taken back by the entry of its end.
func sealAudit(ctx context.Context, tx *sql.Tx, accountID, project, by string) error {
	_, err := tx.ExecContext(ctx, `UPDATE audit SET undone_by = $1 WHERE account_id = $2 AND app_id = $3 AND before IS NOT NULL AND undone_by IS NULL`,
		by, accountID, project)
	if err != nil {
		return fmt.Errorf("sealing audit entries: %w", err)
	}
	return nil
}

// uniteProjects gives into the platforms of both and the earlier beginning.
func uniteProjects(ctx context.Context, tx *sql.Tx, accountID, from, into string) error {
	old, err := readProject(ctx, tx, accountID, from)
	if err != nil {
		return err
	}
	p, err := readProject(ctx, tx, accountID, into)
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

// dropProject deletes a project's row and with it everything that refers to it.
func dropProject(ctx context.Context, tx *sql.Tx, accountID, id string) error {
	ok, err := changed(ctx, tx, `DELETE FROM projects WHERE account_id = $1 AND app_id = $2`, accountID, id)
	if err != nil {
		return fmt.Errorf("deleting project: %w", err)
	}
	if !ok {
		return projects.ErrNotFound
	}
	return nil
}

// DeleteProject removes a project and everything below, and gives the ids of its sessions that were open.
func (s *Store) DeleteProject(ctx context.Context, accountID, id string, e audit.Entry) (open []string, err error) {
	err = s.write(ctx, func(tx *sql.Tx) error {
		if err := lockProjects(ctx, tx, accountID); err != nil {
			return err
		}
		if open, err = openOf(ctx, tx, accountID, id, e.At); err != nil {
			return fmt.Errorf("listing the project's sessions: %w", err)
		}
		if err := sealAudit(ctx, tx, accountID, id, e.ID); err != nil {
			return err
		}
		if err := forgetLogs(ctx, tx, accountID, id); err != nil {
			return err
		}
		if err := dropProject(ctx, tx, accountID, id); err != nil {
			return err
		}
		return insertAudit(ctx, tx, e)
	})
	return open, err
}

func openOf(ctx context.Context, tx *sql.Tx, accountID, id string, now time.Time) (open []string, err error) {
	rows, err := tx.QueryContext(ctx, `SELECT id FROM sessions WHERE account_id = $1 AND app_id = $2 AND closed_at IS NULL AND expires_at > $3`,
		accountID, id, toMS(now))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var one string
		if err := rows.Scan(&one); err != nil {
			return nil, err
		}
		open = append(open, one)
	}
	return open, rows.Err()
}
