package projects

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/service-dev/service/backend/internal/analytics"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/credit"
	"github.com/service-dev/service/backend/internal/db"
)

// MergeProjects moves the keys, sessions, analytics, memories and audit entries of from to into. It also moves the
// assistant's config, credentials and connection page if into has none. It deletes the rest of from and keeps its ID as
// an alias.
func (s *Store) MergeProjects(ctx context.Context, accountID, src, dst string, e audit.Entry) error {
	return s.WriteAccount(ctx, accountID, func(tx *sql.Tx) error {
		from, into, err := readBoth(ctx, tx, resolveProject, accountID, src, dst)
		if err != nil {
			return err
		}
		if from == into {
			return ErrSameProject
		}
		// Lock in the same order as model calls and app events do.
		if err := credit.LockBalance(ctx, tx, accountID); err != nil {
			return err
		}
		numbers, err := analytics.LockProjects(ctx, tx, accountID, from, into)
		if err != nil {
			return err
		}
		if err := s.lockProjectRows(ctx, tx, accountID, from, into); err != nil {
			return err
		}
		if err := moveProject(ctx, tx, accountID, from, into, e.ID); err != nil {
			return err
		}
		if err := credit.Merge(ctx, tx, accountID, from, into); err != nil {
			return err
		}
		// After the settings have been united, because the days of both may differ.
		if err := db.Exec(ctx, tx, "recompute expiry of memories", `UPDATE memories SET expires_at = used_at + 86400000 *
				COALESCE((SELECT g.memory_days FROM gateway_settings g WHERE g.account_id = $1 AND g.app_id = $2), 30)
			WHERE account_id = $1 AND app_id = $2 AND sealed <> ''`, accountID, into); err != nil {
			return err
		}
		if err := analytics.Merge(ctx, tx, numbers[from], numbers[into]); err != nil {
			return err
		}
		if err := uniteProjects(ctx, tx, accountID, from, into); err != nil {
			return err
		}
		if err := deleteProject(ctx, tx, accountID, from); err != nil {
			return err
		}
		e := e // copied because the transaction may run again
		e.Project = into
		return db.ExecAll(ctx, tx, "insert alias",
			db.Stmt(`INSERT INTO project_aliases (account_id, alias, app_id, created_at) VALUES ($1, $2, $3, $4)`,
				accountID, from, into, db.ToMS(e.At)),
			audit.Statement(e))
	})
}

// readBoth calls read for two projects of the account and returns both results.
func readBoth[T any](
	ctx context.Context, q db.Querier, read func(_ context.Context, _ db.Querier, accountID, id string) (T, error),
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
	if !s.Postgres() {
		return nil
	}
	for _, id := range slices.Sorted(slices.Values(ids)) {
		_, err := db.One(ctx, tx, ErrNotFound, db.Value[int],
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
	return db.ExecEach(ctx, tx, "move project", []any{accountID, from, into},
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
				WHERE x.account_id = $1 AND x.app_id = $3 AND 'local/' || x.id = credentials.provider)`, // credentials.ServerPrefix
		`UPDATE attest_settings SET app_id = $3 WHERE account_id = $1 AND app_id = $2 AND NOT EXISTS
			(SELECT 1 FROM attest_settings x WHERE x.account_id = $1 AND x.app_id = $3)`,
		// An install that both projects have stays in into. It is revoked if it was revoked in either.
		`UPDATE attest_installs SET revoked_at = (SELECT MIN(x.revoked_at) FROM attest_installs x
				WHERE x.account_id = $1 AND x.app_id = $2 AND x.key_hash = attest_installs.key_hash)
			WHERE account_id = $1 AND app_id = $3 AND revoked_at IS NULL AND key_hash IN
				(SELECT x.key_hash FROM attest_installs x
					WHERE x.account_id = $1 AND x.app_id = $2 AND x.revoked_at IS NOT NULL)`,
		`UPDATE attest_installs SET app_id = $3 WHERE account_id = $1 AND app_id = $2 AND NOT EXISTS
			(SELECT 1 FROM attest_installs x WHERE x.account_id = $1 AND x.app_id = $3
				AND x.key_hash = attest_installs.key_hash)`,
		`UPDATE memories SET app_id = $3 WHERE account_id = $1 AND app_id = $2`, // no user is in both
		`UPDATE connection_pages SET app_id = $3 WHERE account_id = $1 AND app_id = $2 AND NOT EXISTS
			(SELECT 1 FROM connection_pages x WHERE x.account_id = $1 AND x.app_id = $3)`,
		`UPDATE assistant_configs SET app_id = $3 WHERE account_id = $1 AND app_id = $2 AND NOT EXISTS
			(SELECT 1 FROM assistant_configs x WHERE x.account_id = $1 AND x.app_id = $3)`)
}

// markAllUndone marks all changes to a project's configs as undone by the entry that ends the project.
func markAllUndone(ctx context.Context, tx *sql.Tx, accountID, project, by string) error {
	return db.Exec(ctx, tx, "mark audit entries undone", `UPDATE audit SET undone_by = $1
		WHERE account_id = $2 AND app_id = $3 AND before IS NOT NULL AND undone_by IS NULL`, by, accountID, project)
}

// uniteProjects adds the platforms of project from to project into, and sets its creation time to the earlier one.
func uniteProjects(ctx context.Context, tx *sql.Tx, accountID, from, into string) error {
	old, p, err := readBoth(ctx, tx, readProject, accountID, from, into)
	if err != nil {
		return err
	}
	both := slices.Concat(p.Platforms, old.Platforms)
	p.Platforms = slices.DeleteFunc(Platforms(), func(one string) bool { return !slices.Contains(both, one) })
	if old.CreatedAt.Before(p.CreatedAt) {
		p.CreatedAt = old.CreatedAt
	}
	return saveProject(ctx, tx, accountID, p)
}

// deleteProject deletes a project's row and everything that references it.
func deleteProject(ctx context.Context, tx *sql.Tx, accountID, id string) error {
	return db.MustChange(ctx, tx, ErrNotFound, "delete project",
		`DELETE FROM projects WHERE account_id = $1 AND app_id = $2`, accountID, id)
}

// DeleteProject deletes a project and everything that belongs to it, and returns the IDs of its open sessions.
func (s *Store) DeleteProject(ctx context.Context, accountID, id string, e audit.Entry) (open []string, err error) {
	err = s.WriteAccount(ctx, accountID, func(tx *sql.Tx) error {
		open, err = db.All(ctx, tx, db.Value[string], `SELECT id FROM sessions
			WHERE account_id = $1 AND app_id = $2 AND closed_at IS NULL AND expires_at > $3`, accountID, id, db.ToMS(e.At))
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
		return audit.Insert(ctx, tx, e)
	})
	return open, err
}

// subtractLogs subtracts the logs of a project's sessions from the total size of the account's logs, before they are
// deleted with the project.
func subtractLogs(ctx context.Context, tx *sql.Tx, accountID, project string) error {
	return db.ExecAll(ctx, tx, "subtract event logs",
		// Lock the rows, so that no row is appended between the sum and the deletion.
		db.Stmt(`UPDATE sessions SET last_seq = last_seq WHERE account_id = $1 AND app_id = $2`, accountID, project),
		db.Stmt(`UPDATE account_logs SET bytes = bytes
			- COALESCE((SELECT SUM(log_bytes) FROM sessions WHERE account_id = $1 AND app_id = $2), 0) WHERE account_id = $1`,
			accountID, project))
}
