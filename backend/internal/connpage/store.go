package connpage

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/db"
	"github.com/service-dev/service/backend/internal/projects"
)

// Store stores connection pages. Every method is atomic.
type Store struct{ *db.DB }

// NewStore returns a store in d.
func NewStore(d *db.DB) *Store { return &Store{d} }

// Stored is a stored page. Config contains the settings as JSON; it is empty for the defaults.
type Stored struct {
	AccountID, Project, PageID string
	Version                    int64
	Config                     json.RawMessage
	UpdatedAt                  time.Time // zero if never changed
	By                         audit.Actor
	// Host is the computer of the agent in By, and Name is the project's name. Both are set by reads and ignored by
	// writes.
	Host, Name string
}

const selectConnectionPage = `SELECT p.account_id, p.app_id, p.page_id, p.version, p.config, p.updated_at, p.updated_by,
		p.updated_link, l.host, r.display_name
	FROM connection_pages p JOIN projects r ON r.account_id = p.account_id AND r.app_id = p.app_id
	LEFT JOIN links l ON l.id = p.updated_link AND l.account_id = p.account_id `

func scanConnectionPage(row db.Row) (p Stored, err error) {
	err = row.Scan(&p.AccountID, &p.Project, &p.PageID, &p.Version, (*[]byte)(&p.Config), db.IntoTime(&p.UpdatedAt),
		&p.By.Kind, &p.By.LinkID, db.IntoText(&p.Host), &p.Name)
	if p.Name == "" {
		p.Name = projects.DefaultName(p.Project)
	}
	return p, err
}

// ConnectionPage returns ErrNotFound if the project has no page.
func (s *Store) ConnectionPage(ctx context.Context, account, project string) (Stored, error) {
	return db.One(ctx, s, ErrNotFound, scanConnectionPage,
		selectConnectionPage+"WHERE p.account_id = $1 AND p.app_id = $2", account, project)
}

// ConnectionPageByID returns ErrNotFound for an unknown page.
func (s *Store) ConnectionPageByID(ctx context.Context, pageID string) (Stored, error) {
	return db.One(ctx, s, ErrNotFound, scanConnectionPage,
		selectConnectionPage+"WHERE p.page_id = $1", pageID)
}

// InsertConnectionPage inserts a page. It does nothing if the project already has one or does not exist.
func (s *Store) InsertConnectionPage(ctx context.Context, p Stored) error {
	_, err := s.Exec(ctx, "insert connection page", `INSERT INTO connection_pages
			(account_id, app_id, page_id, version, updated_by, updated_link)
		SELECT account_id, app_id, CAST($3 AS TEXT), 0, '', '' FROM projects WHERE account_id = $1 AND app_id = $2
		ON CONFLICT (account_id, app_id) DO NOTHING`, p.AccountID, p.Project, p.PageID)
	return err
}

// ChangeConnectionPage stores p.Config as version p.Version. It returns a *ConflictError unless the stored version
// is p.Version-1. If undone is not empty, it marks the audit entry with that ID as undone, or returns
// ErrNotUndoable.
func (s *Store) ChangeConnectionPage(ctx context.Context, p Stored, undone string, e audit.Entry) error {
	return s.Write(ctx, func(tx *sql.Tx) error {
		if undone != "" {
			if err := audit.MarkUndone(ctx, tx, ErrNotUndoable, p.AccountID, undone, e.ID); err != nil {
				return err
			}
		}
		current, err := audit.SaveVersion(ctx, tx, "connection_pages", p.Project, e, db.Stmt(`UPDATE connection_pages
			SET version = $1, config = $2, updated_at = $3, updated_by = $4, updated_link = $5
			WHERE account_id = $6 AND app_id = $7 AND version = $8`,
			p.Version, string(p.Config), db.TimeOrNull(p.UpdatedAt), p.By.Kind, p.By.LinkID, p.AccountID, p.Project,
			p.Version-1))
		if errors.Is(err, audit.ErrOtherVersion) {
			return &ConflictError{Current: current}
		}
		return err
	})
}
