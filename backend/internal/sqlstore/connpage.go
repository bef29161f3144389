package sqlstore

import (
	"context"
	"database/sql"
	"errors"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/connpage"
	"github.com/service-dev/service/backend/internal/projects"
)

const selectConnectionPage = `SELECT p.account_id, p.app_id, p.page_id, p.version, p.config, p.updated_at, p.updated_by,
		p.updated_link, l.host, r.display_name
	FROM connection_pages p JOIN projects r ON r.account_id = p.account_id AND r.app_id = p.app_id
	LEFT JOIN links l ON l.id = p.updated_link AND l.account_id = p.account_id `

func scanConnectionPage(row scanner) (p connpage.Stored, err error) {
	err = row.Scan(&p.AccountID, &p.Project, &p.PageID, &p.Version, (*[]byte)(&p.Config), intoTime(&p.UpdatedAt),
		&p.By.Kind, &p.By.LinkID, intoText(&p.Host), &p.Name)
	if p.Name == "" {
		p.Name = projects.DefaultName(p.Project)
	}
	return p, err
}

// ConnectionPage returns connpage.ErrNotFound if the project has no page.
func (s *Store) ConnectionPage(ctx context.Context, account, project string) (connpage.Stored, error) {
	return queryOne(ctx, s.reads, connpage.ErrNotFound, scanConnectionPage,
		selectConnectionPage+"WHERE p.account_id = $1 AND p.app_id = $2", account, project)
}

// ConnectionPageByID returns connpage.ErrNotFound for an unknown page.
func (s *Store) ConnectionPageByID(ctx context.Context, pageID string) (connpage.Stored, error) {
	return queryOne(ctx, s.reads, connpage.ErrNotFound, scanConnectionPage,
		selectConnectionPage+"WHERE p.page_id = $1", pageID)
}

// InsertConnectionPage inserts a page, unless the project already has one or does not exist.
func (s *Store) InsertConnectionPage(ctx context.Context, p connpage.Stored) error {
	_, err := s.exec(ctx, "insert connection page", `INSERT INTO connection_pages
			(account_id, app_id, page_id, version, updated_by, updated_link)
		SELECT account_id, app_id, CAST($3 AS TEXT), 0, '', '' FROM projects WHERE account_id = $1 AND app_id = $2
		ON CONFLICT (account_id, app_id) DO NOTHING`, p.AccountID, p.Project, p.PageID)
	return err
}

// ChangeConnectionPage replaces version n-1 of a page with version n, or returns a *connpage.ConflictError. If the
// change undoes an entry, it marks the entry as undone, or returns connpage.ErrNotUndoable if that is not possible.
func (s *Store) ChangeConnectionPage(ctx context.Context, p connpage.Stored, undone string, e audit.Entry) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		if undone != "" {
			if err := markUndone(ctx, tx, connpage.ErrNotUndoable, p.AccountID, undone, e.ID); err != nil {
				return err
			}
		}
		current, err := saveVersion(ctx, tx, "connection_pages", p.Project, e, stmt(`UPDATE connection_pages
			SET version = $1, config = $2, updated_at = $3, updated_by = $4, updated_link = $5
			WHERE account_id = $6 AND app_id = $7 AND version = $8`,
			p.Version, string(p.Config), orNull(p.UpdatedAt), p.By.Kind, p.By.LinkID, p.AccountID, p.Project, p.Version-1))
		if errors.Is(err, errOtherVersion) {
			return &connpage.ConflictError{Current: current}
		}
		return err
	})
}
