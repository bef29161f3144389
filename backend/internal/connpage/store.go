package connpage

import (
	"context"
	"encoding/json"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
)

// Stored is a page as stored. Config contains the settings as JSON, and is empty while they are the defaults.
type Stored struct {
	AccountID, Project, PageID string
	Version                    int64
	Config                     json.RawMessage
	UpdatedAt                  time.Time // zero: never
	By                         audit.Actor
	// Host is the computer of the agent in By, Name the name of the project; both are read only.
	Host, Name string
}

// Store stores pages. Every method is atomic; those that change something also insert the entry.
type Store interface {
	// ConnectionPage returns ErrNotFound if there is none.
	ConnectionPage(ctx context.Context, account, project string) (Stored, error)
	// ConnectionPageByID returns a page by its PageID, or ErrNotFound.
	ConnectionPageByID(ctx context.Context, pageID string) (Stored, error)
	// InsertConnectionPage inserts a page unless the project has one or does not exist.
	InsertConnectionPage(ctx context.Context, p Stored) error
	// ChangeConnectionPage stores p.Config as p.Version over p.Version-1, or returns a *ConflictError. The entry with the
	// id undone is marked as undone; if that is not possible, it returns ErrNotUndoable.
	ChangeConnectionPage(ctx context.Context, p Stored, undone string, e audit.Entry) error
}
