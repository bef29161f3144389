package projects

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/db"
)

// AddProjectKey inserts a key, and its project if that does not exist. An alias is resolved to the project that it
// was merged into. AddProjectKey returns ErrTooManyProjects, or ErrTooManyKeys if the project has limit live keys;
// the limit holds even with concurrent calls. The audit entry gets the project's real ID and sorts after the entry
// for the project's creation.
func (s *Store) AddProjectKey(ctx context.Context, k StoredKey, limit int, e audit.Entry) error {
	return s.Write(ctx, func(tx *sql.Tx) error {
		id, err := Ensure(ctx, tx, k.AccountID, k.Project, k.By, k.CreatedAt)
		if err != nil {
			return err
		}
		// Ensure has locked the account, so concurrent calls count each other's keys.
		n, err := db.QueryValue[int](ctx, tx, `SELECT COUNT(*) FROM project_keys
			WHERE account_id = $1 AND app_id = $2 AND revoked_at IS NULL`, k.AccountID, id)
		if err != nil {
			return fmt.Errorf("count project keys: %w", err)
		}
		if n >= limit {
			return ErrTooManyKeys
		}
		k := k // copied because the transaction may run again
		k.Project = id
		// The entry gets a new ID, so that it sorts after the entry for the project's creation.
		return insertKey(ctx, tx, k, audit.New(e.At, e.AccountID, e.Actor, e.Action, id, e.Summary))
	})
}

// insertKey inserts a key and its audit entry, and deletes old keys of the project.
func insertKey(ctx context.Context, tx *sql.Tx, k StoredKey, e audit.Entry) error {
	return db.ExecAll(ctx, tx, "insert project key",
		db.Stmt(`INSERT INTO project_keys
				(id, hash, account_id, app_id, name, hint, prefix, created_at, actor, link_id)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
			k.ID, k.Hash, k.AccountID, k.Project, k.Name, k.Hint, k.Prefix, db.ToMS(k.CreatedAt), k.By.Kind, k.By.LinkID),
		deleteOldKeys(k.AccountID, k.Project, k.CreatedAt),
		audit.Statement(e))
}

// ProjectKeys lists live keys, then revoked ones, each newest first.
func (s *Store) ProjectKeys(ctx context.Context, accountID, project string) ([]KeyInfo, error) {
	return db.All(ctx, s, func(row db.Row) (k KeyInfo, err error) {
		var kind, host, client string
		err = row.Scan(&k.ID, &k.Name, &k.Hint, &k.Prefix, db.IntoTime(&k.CreatedAt), db.IntoTime(&k.LastUsedAt),
			db.IntoTime(&k.RevokedAt), &kind, db.IntoText(&host), db.IntoText(&client))
		k.By = audit.Name(kind, host, client)
		return k, err
	}, `SELECT k.id, k.name, k.hint, k.prefix, k.created_at, k.last_used_at, k.revoked_at, k.actor, l.host, l.client
		FROM project_keys k LEFT JOIN links l ON l.id = k.link_id AND l.account_id = k.account_id
		WHERE k.account_id = $1 AND k.app_id = $2
		ORDER BY CASE WHEN k.revoked_at IS NULL THEN 0 ELSE 1 END, k.created_at DESC, k.id`, accountID, project)
}

// RotateProjectKey revokes a live key and stores k, or returns ErrNoKey.
func (s *Store) RotateProjectKey(ctx context.Context, keyID string, k StoredKey, e audit.Entry) error {
	return s.WriteAccount(ctx, k.AccountID, func(tx *sql.Tx) error {
		revoked, err := revokeKey(ctx, tx, keyID, k.AccountID, k.Project, k.CreatedAt)
		if err := db.Require(revoked, err, ErrNoKey); err != nil {
			return err
		}
		return insertKey(ctx, tx, k, e)
	})
}

func revokeKey(ctx context.Context, tx *sql.Tx, keyID, accountID, project string, now time.Time) (bool, error) {
	return db.Changed(ctx, tx, "revoke project key", `UPDATE project_keys SET revoked_at = $1
		WHERE id = $2 AND account_id = $3 AND app_id = $4 AND revoked_at IS NULL`, db.ToMS(now), keyID, accountID, project)
}

// RevokeProjectKey revokes a key. It does not change a key that is already revoked. It returns ErrNoKey if
// there is no such key.
func (s *Store) RevokeProjectKey(ctx context.Context, keyID string, e audit.Entry) error {
	return s.Write(ctx, func(tx *sql.Tx) error {
		revoked, err := revokeKey(ctx, tx, keyID, e.AccountID, e.Project, e.At)
		if err != nil {
			return err
		}
		if revoked {
			return db.ExecAll(ctx, tx, "revoke project key", deleteOldKeys(e.AccountID, e.Project, e.At), audit.Statement(e))
		}
		known, err := db.Exists(ctx, tx, `SELECT 1 FROM project_keys WHERE id = $1 AND account_id = $2 AND app_id = $3`,
			keyID, e.AccountID, e.Project)
		return db.Require(known, err, ErrNoKey)
	})
}

// deleteOldKeys deletes a project's revoked keys that are past their retention or beyond the number to keep.
func deleteOldKeys(accountID, project string, now time.Time) db.Statement {
	return db.Stmt(`DELETE FROM project_keys WHERE account_id = $1 AND app_id = $2 AND revoked_at IS NOT NULL
		AND (revoked_at < $3 OR id NOT IN
			(SELECT id FROM project_keys WHERE account_id = $1 AND app_id = $2 AND revoked_at IS NOT NULL
				ORDER BY revoked_at DESC, id LIMIT $4))`,
		accountID, project, db.ToMS(now.Add(-RevokedFor)), RevokedKept)
}

// KeyByHash returns the owner and last use of a live key of an active account, or ErrUnknownKey.
func (s *Store) KeyByHash(ctx context.Context, hash string) (o KeyOwner, used time.Time, err error) {
	err = s.QueryPrepared(ctx, `SELECT k.account_id, k.app_id, k.id, k.last_used_at FROM project_keys k
		JOIN accounts a ON a.id = k.account_id WHERE k.hash = $1 AND k.revoked_at IS NULL AND a.state = 'active'`, hash).
		Scan(&o.AccountID, &o.Project, &o.KeyID, db.IntoTime(&used))
	if err != nil {
		return KeyOwner{}, used, db.ReplaceNoRows(err, ErrUnknownKey)
	}
	return o, used, nil
}

// LiveKeys returns the IDs in ids of keys that KeyByHash would find, in any order. It accepts at most a few
// hundred IDs.
func (s *Store) LiveKeys(ctx context.Context, ids []string) ([]string, error) {
	return db.All(ctx, s, db.Value[string], `SELECT k.id FROM project_keys k JOIN accounts a ON a.id = k.account_id
		WHERE k.revoked_at IS NULL AND a.state = 'active' AND k.id IN `+db.Placeholders(len(ids), 1), db.Args(ids)...)
}

// MarkKeyUsed records a use, unless one is already recorded after since.
func (s *Store) MarkKeyUsed(ctx context.Context, keyID string, now, since time.Time) error {
	_, err := s.Exec(ctx, "touch project key", `UPDATE project_keys SET last_used_at = $1
		WHERE id = $2 AND (last_used_at IS NULL OR last_used_at <= $3)`, db.ToMS(now), keyID, db.ToMS(since))
	return err
}
