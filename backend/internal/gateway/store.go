package gateway

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/db"
	"github.com/service-dev/service/backend/internal/projects"
)

// Store stores the settings of projects for the gateway, and their local servers. Every method is atomic.
type Store struct{ *db.DB }

// NewStore returns a Store backed by d.
func NewStore(d *db.DB) *Store { return &Store{d} }

// KeySource returns how a project pays for its model calls.
func (s *Store) KeySource(ctx context.Context, account, project string) (string, error) {
	source, err := db.Value[string](s.QueryPrepared(ctx, `SELECT key_source FROM gateway_settings
		WHERE account_id = $1 AND app_id = $2`, account, project))
	if source == "" {
		source = KeySourceCredit
	}
	return source, db.ReplaceNoRows(err, nil)
}

// SetKeySource sets the key source of the entry's project, or returns projects.ErrNotFound.
func (s *Store) SetKeySource(ctx context.Context, source string, e audit.Entry) error {
	return audit.Write(ctx, s.DB, e, func(tx *sql.Tx) error {
		return db.Exec(ctx, tx, "set key source", `INSERT INTO gateway_settings (account_id, app_id, key_source)
			VALUES ($1, $2, $3) ON CONFLICT (account_id, app_id) DO UPDATE SET key_source = excluded.key_source`,
			e.AccountID, e.Project, source)
	})
}

// LocalServers lists the servers of a project by ID.
func (s *Store) LocalServers(ctx context.Context, account, project string) ([]LocalServer, error) {
	return db.All(ctx, s, func(row db.Row) (l LocalServer, err error) {
		var models string
		if err := row.Scan(&l.ID, &l.BaseURL, &models, &l.Keyed, &l.Problem, db.IntoTime(&l.Checked)); err != nil {
			return l, err
		}
		if err := json.Unmarshal([]byte(models), &l.Models); err != nil {
			return l, fmt.Errorf("read the models of a local server: %w", err)
		}
		return l, nil
	}, `SELECT id, base_url, models, keyed <> 0, problem, checked_at FROM local_servers
		WHERE account_id = $1 AND app_id = $2 ORDER BY id`, account, project)
}

// PutLocalServer inserts or replaces a server of the entry's project. most is the maximum number of servers per
// project.
func (s *Store) PutLocalServer(ctx context.Context, l LocalServer, most int, e audit.Entry) error {
	models, err := json.Marshal(l.Models)
	if err != nil {
		return err
	}
	return audit.Write(ctx, s.DB, e, func(tx *sql.Tx) error {
		if err := projects.Lock(ctx, tx, projects.ErrNotFound, e.AccountID, e.Project); err != nil {
			return err
		}
		others, err := db.QueryValue[int](ctx, tx, `SELECT COUNT(*) FROM local_servers
			WHERE account_id = $1 AND app_id = $2 AND id <> $3`, e.AccountID, e.Project, l.ID)
		switch {
		case err != nil:
			return err
		case others >= most:
			return ErrServers
		}
		return db.Exec(ctx, tx, "save local server", `INSERT INTO local_servers (account_id, app_id, id, base_url, models,
				keyed, problem, checked_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
			ON CONFLICT (account_id, app_id, id) DO UPDATE SET base_url = $4, models = $5, keyed = $6, problem = $7,
				checked_at = $8`, e.AccountID, e.Project, l.ID, l.BaseURL,
			string(models), db.BoolInt(l.Keyed), l.Problem, db.ToMS(l.Checked))
	})
}

// NoteLocalServer stores the result of a check, unless the server has been replaced or deleted since the check began.
func (s *Store) NoteLocalServer(ctx context.Context, account, project string, l LocalServer) error {
	models, err := json.Marshal(l.Models)
	if err != nil {
		return err
	}
	return s.Write(ctx, func(tx *sql.Tx) error {
		return db.Exec(ctx, tx, "save check of local server", `UPDATE local_servers
			SET models = $5, problem = $6, checked_at = $7
			WHERE account_id = $1 AND app_id = $2 AND id = $3 AND base_url = $4`,
			account, project, l.ID, l.BaseURL, string(models), l.Problem, db.ToMS(l.Checked))
	})
}

// DeleteLocalServer deletes a server of the entry's project, or returns ErrNoServer.
func (s *Store) DeleteLocalServer(ctx context.Context, id string, e audit.Entry) error {
	return audit.Write(ctx, s.DB, e, func(tx *sql.Tx) error {
		return db.MustChange(ctx, tx, ErrNoServer, "delete local server",
			"DELETE FROM local_servers WHERE account_id = $1 AND app_id = $2 AND id = $3", e.AccountID, e.Project, id)
	})
}
