package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/gateway"
	"github.com/service-dev/service/backend/internal/projects"
)

// LocalServers lists the servers of a project by ID.
func (s *Store) LocalServers(ctx context.Context, account, project string) ([]gateway.LocalServer, error) {
	return queryAll(ctx, s.reads, func(row scanner) (l gateway.LocalServer, err error) {
		var models string
		if err := row.Scan(&l.ID, &l.BaseURL, &models, &l.Keyed, &l.Problem, intoTime(&l.Checked)); err != nil {
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
func (s *Store) PutLocalServer(ctx context.Context, l gateway.LocalServer, most int, e audit.Entry) error {
	models, err := json.Marshal(l.Models)
	if err != nil {
		return err
	}
	return s.writeAudited(ctx, e, func(tx *sql.Tx) error {
		if err := lockProject(ctx, tx, projects.ErrNotFound, e.AccountID, e.Project); err != nil {
			return err
		}
		others, err := queryValue[int](ctx, tx, `SELECT COUNT(*) FROM local_servers
			WHERE account_id = $1 AND app_id = $2 AND id <> $3`, e.AccountID, e.Project, l.ID)
		switch {
		case err != nil:
			return err
		case others >= most:
			return gateway.ErrServers
		}
		return execTx(ctx, tx, "save local server", `INSERT INTO local_servers (account_id, app_id, id, base_url, models,
				keyed, problem, checked_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
			ON CONFLICT (account_id, app_id, id) DO UPDATE SET base_url = $4, models = $5, keyed = $6, problem = $7,
				checked_at = $8`, e.AccountID, e.Project, l.ID, l.BaseURL,
			string(models), boolInt(l.Keyed), l.Problem, toMS(l.Checked))
	})
}

// NoteLocalServer stores the result of a check, unless the server has been replaced or deleted since the check began.
func (s *Store) NoteLocalServer(ctx context.Context, account, project string, l gateway.LocalServer) error {
	models, err := json.Marshal(l.Models)
	if err != nil {
		return err
	}
	return s.write(ctx, func(tx *sql.Tx) error {
		return execTx(ctx, tx, "note check of local server", `UPDATE local_servers
			SET models = $5, problem = $6, checked_at = $7
			WHERE account_id = $1 AND app_id = $2 AND id = $3 AND base_url = $4`,
			account, project, l.ID, l.BaseURL, string(models), l.Problem, toMS(l.Checked))
	})
}

// DeleteLocalServer deletes a server of the entry's project, or returns gateway.ErrNoServer.
func (s *Store) DeleteLocalServer(ctx context.Context, id string, e audit.Entry) error {
	return s.writeAudited(ctx, e, func(tx *sql.Tx) error {
		return mustChange(ctx, tx, gateway.ErrNoServer, "delete local server",
			"DELETE FROM local_servers WHERE account_id = $1 AND app_id = $2 AND id = $3", e.AccountID, e.Project, id)
	})
}
