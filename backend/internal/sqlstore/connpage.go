package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/connpage"
	"github.com/service-dev/service/backend/internal/projects"
)

func (s *Store) connectionPage(ctx context.Context, where string, args ...any) (connpage.Stored, error) {
	var p connpage.Stored
	var config, host sql.NullString
	var at sql.NullInt64
	err := s.reads.QueryRowContext(ctx, `SELECT p.account_id, p.app_id, p.page_id, p.version, p.config, p.updated_at, p.updated_by,
			p.updated_link, l.host, r.display_name
		FROM connection_pages p JOIN projects r ON r.account_id = p.account_id AND r.app_id = p.app_id LEFT JOIN links l ON l.id = p.updated_link AND l.account_id = p.account_id `+where, args...).
		Scan(&p.AccountID, &p.Project, &p.PageID, &p.Version, &config, &at, &p.By.Kind, &p.By.LinkID, &host, &p.Name)
	p.UpdatedAt, p.Host = fromNull(at), host.String
	if p.Name == "" {
		p.Name = projects.DefaultName(p.Project)
	}
	if config.Valid {
		p.Config = []byte(config.String)
	}
	return p, missing(err, connpage.ErrNotFound)
}

// ConnectionPage answers connpage.ErrNotFound.
func (s *Store) ConnectionPage(ctx context.Context, account, project string) (connpage.Stored, error) {
	return s.connectionPage(ctx, "WHERE p.account_id = $1 AND p.app_id = $2", account, project)
}

// ConnectionPageByID answers connpage.ErrNotFound.
func (s *Store) ConnectionPageByID(ctx context.Context, pageID string) (connpage.Stored, error) {
	return s.connectionPage(ctx, "WHERE p.page_id = $1", pageID)
}

// MakeConnectionPage stores a page unless the project has one or is not there.
func (s *Store) MakeConnectionPage(ctx context.Context, p connpage.Stored) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO connection_pages (account_id, app_id, page_id, version, updated_by, updated_link)
			SELECT account_id, app_id, CAST($3 AS TEXT), 0, '', '' FROM projects WHERE account_id = $1 AND app_id = $2
			ON CONFLICT (account_id, app_id) DO NOTHING`, p.AccountID, p.Project, p.PageID)
		return err
	})
}

// ChangeConnectionPage stores version n of a page over version n-1, or answers *connpage.ConflictError; an entry that it
// takes back is marked, or it is connpage.ErrNotUndoable.
func (s *Store) ChangeConnectionPage(ctx context.Context, p connpage.Stored, undone string, e audit.Entry) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		if undone != "" {
			ok, err := markUndone(ctx, tx, p.AccountID, undone, e.ID)
			if err != nil {
				return err
			}
			if !ok {
				return connpage.ErrNotUndoable
			}
		}
		ok, err := changed(ctx, tx, `UPDATE connection_pages SET version = $1, config = $2, updated_at = $3, updated_by = $4, updated_link = $5
			WHERE account_id = $6 AND app_id = $7 AND version = $8`,
			p.Version, string(p.Config), orNull(p.UpdatedAt), p.By.Kind, p.By.LinkID, p.AccountID, p.Project, p.Version-1)
		if err != nil {
			return fmt.Errorf("updating connection page: %w", err)
		}
		if ok {
			return insertAudit(ctx, tx, e)
		}
		var current int64
		err = tx.QueryRowContext(ctx, "SELECT version FROM connection_pages WHERE account_id = $1 AND app_id = $2", p.AccountID, p.Project).Scan(&current)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("reading the version of a connection page: %w", err)
		}
		return &connpage.ConflictError{Current: current}
	})
}
