package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/service-dev/service/backend/internal/projects"
)

// ensureProject makes the project of an account unless it is there.
func ensureProject(ctx context.Context, tx *sql.Tx, accountID, appID string, now time.Time) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO projects (account_id, app_id, created_at) VALUES ($1, $2, $3)
		ON CONFLICT (account_id, app_id) DO NOTHING`, accountID, appID, toMS(now))
	if err != nil {
		return fmt.Errorf("inserting project: %w", err)
	}
	return nil
}

// AddProjectKey stores a key, and its project when that is new, or returns projects.ErrTooManyKeys.
func (s *Store) AddProjectKey(ctx context.Context, k projects.StoredKey, limit int) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		if err := ensureProject(ctx, tx, k.AccountID, k.Project, k.CreatedAt); err != nil {
			return err
		}
		// The no-op update locks the project's row: of many that ask at once each counts the keys of those before.
		if _, err := tx.ExecContext(ctx, `UPDATE projects SET created_at = created_at WHERE account_id = $1 AND app_id = $2`,
			k.AccountID, k.Project); err != nil {
			return fmt.Errorf("locking project: %w", err)
		}
		var n int
		err := tx.QueryRowContext(ctx, `SELECT COUNT(*) FROM project_keys WHERE account_id = $1 AND app_id = $2`,
			k.AccountID, k.Project).Scan(&n)
		if err != nil {
			return fmt.Errorf("counting project keys: %w", err)
		}
		if n >= limit {
			return projects.ErrTooManyKeys
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO project_keys (hash, account_id, app_id, name, hint, created_at)
			VALUES ($1, $2, $3, $4, $5, $6)`, k.Hash, k.AccountID, k.Project, k.Name, k.Hint, toMS(k.CreatedAt))
		if err != nil {
			return fmt.Errorf("inserting project key: %w", err)
		}
		return nil
	})
}
