package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/projects"
)

// AddProjectKey stores a key, and its project when that is new, or returns projects.ErrTooManyKeys.
func (s *Store) AddProjectKey(ctx context.Context, k projects.StoredKey, limit int, e audit.Entry) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		id, err := ensureProject(ctx, tx, k.AccountID, k.Project, k.By, k.CreatedAt)
		if err != nil {
			return err
		}
		// ensureProject holds the account's lock: of many that ask at once each counts the keys of those before.
		var n int
		err = tx.QueryRowContext(ctx, `SELECT COUNT(*) FROM project_keys WHERE account_id = $1 AND app_id = $2 AND revoked_at IS NULL`,
			k.AccountID, id).Scan(&n)
		if err != nil {
			return fmt.Errorf("counting project keys: %w", err)
		}
		if n >= limit {
			return projects.ErrTooManyKeys
		}
		k := k // the transaction may run again
		k.Project = id
		if err := insertKey(ctx, tx, k); err != nil {
			return err
		}
		if err := dropOldKeys(ctx, tx, k.AccountID, id, k.CreatedAt); err != nil {
			return err
		}
		// A new id, so that it sorts after the entry of the project's beginning.
		return insertAudit(ctx, tx, audit.New(e.At, e.AccountID, e.Actor, e.Action, id, e.Summary))
	})
}

func insertKey(ctx context.Context, tx *sql.Tx, k projects.StoredKey) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO project_keys (id, hash, account_id, app_id, name, hint, prefix, created_at, actor, link_id)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
		k.ID, k.Hash, k.AccountID, k.Project, k.Name, k.Hint, k.Prefix, toMS(k.CreatedAt), k.By.Kind, k.By.LinkID)
	if err != nil {
		return fmt.Errorf("inserting project key: %w", err)
	}
	return nil
}

// ProjectKeys lists keys, live ones first, newest first.
func (s *Store) ProjectKeys(ctx context.Context, accountID, project string) ([]projects.KeyInfo, error) {
	rows, err := s.reads.QueryContext(ctx, `SELECT k.id, k.name, k.hint, k.prefix, k.created_at, k.last_used_at, k.revoked_at, k.actor, l.host, l.client
		FROM project_keys k LEFT JOIN links l ON l.id = k.link_id AND l.account_id = k.account_id
		WHERE k.account_id = $1 AND k.app_id = $2
		ORDER BY CASE WHEN k.revoked_at IS NULL THEN 0 ELSE 1 END, k.created_at DESC, k.id`, accountID, project)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []projects.KeyInfo
	for rows.Next() {
		var k projects.KeyInfo
		var created int64
		var used, revoked sql.NullInt64
		var kind string
		var host, client sql.NullString
		if err := rows.Scan(&k.ID, &k.Name, &k.Hint, &k.Prefix, &created, &used, &revoked, &kind, &host, &client); err != nil {
			return nil, err
		}
		k.CreatedAt, k.LastUsedAt, k.RevokedAt = fromMS(created), fromNull(used), fromNull(revoked)
		k.By = audit.Name(kind, host.String, client.String)
		all = append(all, k)
	}
	return all, rows.Err()
}

// RotateProjectKey revokes a live key and stores k in its place, or returns projects.ErrNoKey.
func (s *Store) RotateProjectKey(ctx context.Context, keyID string, k projects.StoredKey, e audit.Entry) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		if err := lockProjects(ctx, tx, k.AccountID); err != nil {
			return err
		}
		ok, err := changed(ctx, tx, `UPDATE project_keys SET revoked_at = $1 WHERE id = $2 AND account_id = $3 AND app_id = $4 AND revoked_at IS NULL`,
			toMS(k.CreatedAt), keyID, k.AccountID, k.Project)
		if err != nil {
			return fmt.Errorf("revoking project key: %w", err)
		}
		if !ok {
			return projects.ErrNoKey
		}
		if err := insertKey(ctx, tx, k); err != nil {
			return err
		}
		if err := dropOldKeys(ctx, tx, k.AccountID, k.Project, k.CreatedAt); err != nil {
			return err
		}
		return insertAudit(ctx, tx, e)
	})
}

// RevokeProjectKey revokes a key; one that is revoked already stays as it is.
func (s *Store) RevokeProjectKey(ctx context.Context, keyID string, e audit.Entry) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		ok, err := changed(ctx, tx, `UPDATE project_keys SET revoked_at = $1 WHERE id = $2 AND account_id = $3 AND app_id = $4 AND revoked_at IS NULL`,
			toMS(e.At), keyID, e.AccountID, e.Project)
		if err != nil {
			return fmt.Errorf("revoking project key: %w", err)
		}
		if ok {
			if err := dropOldKeys(ctx, tx, e.AccountID, e.Project, e.At); err != nil {
				return err
			}
			return insertAudit(ctx, tx, e)
		}
		var one int
		err = tx.QueryRowContext(ctx, `SELECT 1 FROM project_keys WHERE id = $1 AND account_id = $2 AND app_id = $3`, keyID, e.AccountID, e.Project).Scan(&one)
		return missing(err, projects.ErrNoKey)
	})
}

// dropOldKeys deletes a project's revoked keys that are past their time or beyond the newest that are kept.
func dropOldKeys(ctx context.Context, tx *sql.Tx, accountID, project string, now time.Time) error {
	_, err := tx.ExecContext(ctx, `DELETE FROM project_keys WHERE account_id = $1 AND app_id = $2 AND revoked_at IS NOT NULL
		AND (revoked_at < $3 OR id NOT IN (SELECT id FROM project_keys WHERE account_id = $1 AND app_id = $2 AND revoked_at IS NOT NULL
			ORDER BY revoked_at DESC, id LIMIT $4))`, accountID, project, toMS(now.Add(-projects.RevokedFor)), projects.RevokedKept)
	if err != nil {
		return fmt.Errorf("deleting old project keys: %w", err)
	}
	return nil
}

// KeyByHash returns the owner of a live key of an active account and its last use, or projects.ErrUnknownKey.
func (s *Store) KeyByHash(ctx context.Context, hash string) (projects.KeyOwner, time.Time, error) {
	var o projects.KeyOwner
	var used sql.NullInt64
	err := s.reads.QueryRowContext(ctx, `SELECT k.account_id, k.app_id, k.id, k.last_used_at FROM project_keys k
		JOIN accounts a ON a.id = k.account_id WHERE k.hash = $1 AND k.revoked_at IS NULL AND a.state = 'active'`, hash).
		Scan(&o.AccountID, &o.Project, &o.KeyID, &used)
	if err != nil {
		return projects.KeyOwner{}, time.Time{}, missing(err, projects.ErrUnknownKey)
	}
	return o, fromNull(used), nil
}

// MarkKeyUsed notes a use unless one after since is noted already.
func (s *Store) MarkKeyUsed(ctx context.Context, keyID string, now, since time.Time) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE project_keys SET last_used_at = $1 WHERE id = $2 AND (last_used_at IS NULL OR last_used_at <= $3)`,
			toMS(now), keyID, toMS(since))
		return err
	})
}
