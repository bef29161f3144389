package connpage

import (
	"context"
	"encoding/json"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
)

// Stored is a page as it lies in the store. Config is the settings as JSON, empty while they are the defaults.
type Stored struct {
	AccountID, Project, PageID string
	Version                    int64
	Config                     json.RawMessage
	UpdatedAt                  time.Time // zero: never
	By                         audit.Actor
	// Host is where the agent of By runs, Name what the project is called; read only.
	Host, Name string
}

// Store keeps pages. Every method is atomic; those that change something write the entry with it.
type Store interface {
	// ConnectionPage answers ErrNotFound.
	ConnectionPage(ctx context.Context, account, project string) (Stored, error)
	// ConnectionPageByID finds a page by its PageID, or answers ErrNotFound.
	ConnectionPageByID(ctx context.Context, pageID string) (Stored, error)
	// MakeConnectionPage stores a page unless the project has one or is not there.
	MakeConnectionPage(ctx context.Context, p Stored) error
	// ChangeConnectionPage stores p.Config as p.Version if p.Version-1 stands, else it answers a *ConflictError. With
	// undone, the id of an entry, that entry is marked as taken back, or it is ErrNotUndoable.
	ChangeConnectionPage(ctx context.Context, p Stored, undone string, e audit.Entry) error
}
