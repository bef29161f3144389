package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/projects"
)

// AddProjectKey inserts a key, and its project if that does not exist, or returns projects.ErrTooManyKeys.
func (s *Store) AddProjectKey(ctx context.Context, k projects.StoredKey, limit int, e audit.Entry) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		id, err := ensureProject(ctx, tx, k.AccountID, k.Project, k.By, k.CreatedAt)
		if err != nil {
			return err
		}
		// ensureProject has locked the account, so concurrent calls count each other's keys.
		n, err := queryValue[int](ctx, tx, `SELECT COUNT(*) FROM project_keys
			WHERE account_id = $1 AND app_id = $2 AND revoked_at IS NULL`, k.AccountID, id)
		if err != nil {
			return fmt.Errorf("count project keys: %w", err)
		}
		if n >= limit {
			return projects.ErrTooManyKeys
		}
		k := k // the transaction may run again
		k.Project = id
		// The entry gets a new ID, so that it sorts after the entry for the project's creation.
		return insertKey(ctx, tx, k, audit.New(e.At, e.AccountID, e.Actor, e.Action, id, e.Summary))
	})
}

// insertKey inserts a key and its audit entry, and deletes old keys of the project.
func insertKey(ctx context.Context, tx *sql.Tx, k projects.StoredKey, e audit.Entry) error {
	return execAll(ctx, tx, "insert project key",
		stmt(`INSERT INTO project_keys
				(id, hash, account_id, app_id, name, hint, prefix, created_at, actor, link_id)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
			k.ID, k.Hash, k.AccountID, k.Project, k.Name, k.Hint, k.Prefix, toMS(k.CreatedAt), k.By.Kind, k.By.LinkID),
		deleteOldKeys(k.AccountID, k.Project, k.CreatedAt),
		auditStatement(e))
}

// ProjectKeys lists live keys, then revoked ones, each newest first.
func (s *Store) ProjectKeys(ctx context.Context, accountID, project string) ([]projects.KeyInfo, error) {
	return queryAll(ctx, s.reads, func(row scanner) (k projects.KeyInfo, err error) {
		var kind, host, client string
		err = row.Scan(&k.ID, &k.Name, &k.Hint, &k.Prefix, intoTime(&k.CreatedAt), intoTime(&k.LastUsedAt),
			intoTime(&k.RevokedAt), &kind, intoText(&host), intoText(&client))
		k.By = audit.Name(kind, host, client)
		return k, err
	}, `SELECT k.id, k.name, k.hint, k.prefix, k.created_at, k.last_used_at, k.revoked_at, k.actor, l.host, l.client
		FROM project_keys k LEFT JOIN links l ON l.id = k.link_id AND l.account_id = k.account_id
		WHERE k.account_id = $1 AND k.app_id = $2
		ORDER BY CASE WHEN k.revoked_at IS NULL THEN 0 ELSE 1 END, k.created_at DESC, k.id`, accountID, project)
}

// RotateProjectKey revokes a live key and stores k, or returns projects.ErrNoKey.
func (s *Store) RotateProjectKey(ctx context.Context, keyID string, k projects.StoredKey, e audit.Entry) error {
	return s.writeProjects(ctx, k.AccountID, func(tx *sql.Tx) error {
		revoked, err := revokeKey(ctx, tx, keyID, k.AccountID, k.Project, k.CreatedAt)
		if err := require(revoked, err, projects.ErrNoKey); err != nil {
			return err
		}
		return insertKey(ctx, tx, k, e)
	})
}

func revokeKey(ctx context.Context, tx *sql.Tx, keyID, accountID, project string, now time.Time) (bool, error) {
	return changed(ctx, tx, "revoke project key", `UPDATE project_keys SET revoked_at = $1
		WHERE id = $2 AND account_id = $3 AND app_id = $4 AND revoked_at IS NULL`, toMS(now), keyID, accountID, project)
}

// RevokeProjectKey revokes a key. It does not change a key that is already revoked. It returns projects.ErrNoKey if
// there is no such key.
func (s *Store) RevokeProjectKey(ctx context.Context, keyID string, e audit.Entry) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		revoked, err := revokeKey(ctx, tx, keyID, e.AccountID, e.Project, e.At)
		if err != nil {
			return err
		}
		if revoked {
			return execAll(ctx, tx, "revoke project key", deleteOldKeys(e.AccountID, e.Project, e.At), auditStatement(e))
		}
		known, err := hasRow(ctx, tx, `SELECT 1 FROM project_keys WHERE id = $1 AND account_id = $2 AND app_id = $3`,
			keyID, e.AccountID, e.Project)
		return require(known, err, projects.ErrNoKey)
	})
}

// deleteOldKeys deletes a project's revoked keys that are past their retention or beyond the number to keep.
func deleteOldKeys(accountID, project string, now time.Time) statement {
	return stmt(`DELETE FROM project_keys WHERE account_id = $1 AND app_id = $2 AND revoked_at IS NOT NULL
		AND (revoked_at < $3 OR id NOT IN
			(SELECT id FROM project_keys WHERE account_id = $1 AND app_id = $2 AND revoked_at IS NOT NULL
				ORDER BY revoked_at DESC, id LIMIT $4))`,
		accountID, project, toMS(now.Add(-projects.RevokedFor)), projects.RevokedKept)
}

// KeyByHash returns the owner and last use of a live key of an active account, or projects.ErrUnknownKey.
func (s *Store) KeyByHash(ctx context.Context, hash string) (o projects.KeyOwner, used time.Time, err error) {
	err = s.pointQuery(ctx, `SELECT k.account_id, k.app_id, k.id, k.last_used_at FROM project_keys k
		JOIN accounts a ON a.id = k.account_id WHERE k.hash = $1 AND k.revoked_at IS NULL AND a.state = 'active'`, hash).
		Scan(&o.AccountID, &o.Project, &o.KeyID, intoTime(&used))
	if err != nil {
		return projects.KeyOwner{}, used, replaceNoRows(err, projects.ErrUnknownKey)
	}
	return o, used, nil
}

// LiveKeys returns the given keys that KeyByHash would find, in any order. It accepts at most a few hundred IDs.
func (s *Store) LiveKeys(ctx context.Context, ids []string) ([]string, error) {
	return queryAll(ctx, s.reads, value[string], `SELECT k.id FROM project_keys k JOIN accounts a ON a.id = k.account_id
		WHERE k.revoked_at IS NULL AND a.state = 'active' AND k.id IN `+placeholders(len(ids), 1), anys(ids)...)
}

// MarkKeyUsed records a use, unless one is already recorded after since.
func (s *Store) MarkKeyUsed(ctx context.Context, keyID string, now, since time.Time) error {
	_, err := s.exec(ctx, "touch project key", `UPDATE project_keys SET last_used_at = $1
		WHERE id = $2 AND (last_used_at IS NULL OR last_used_at <= $3)`, toMS(now), keyID, toMS(since))
	return err
}
