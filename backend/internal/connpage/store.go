package connpage

import (
	"context"
	"encoding/json"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
)

// Stored is a stored page. Config contains the settings as JSON, and is empty while they are the defaults.
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

// Store stores pages. Every method is atomic. Methods that change a page also insert the audit entry.
type Store interface {
	// ConnectionPage returns ErrNotFound if the project has no page.
	ConnectionPage(ctx context.Context, account, project string) (Stored, error)
	// ConnectionPageByID returns the page with a PageID, or ErrNotFound.
	ConnectionPageByID(ctx context.Context, pageID string) (Stored, error)
	// InsertConnectionPage inserts a page. It does nothing if the project already has one or does not exist.
	InsertConnectionPage(ctx context.Context, p Stored) error
	// ChangeConnectionPage stores p.Config as version p.Version. It returns a *ConflictError unless the stored version
	// is p.Version-1. If undone is not empty, it marks the audit entry with that ID as undone, or returns
	// ErrNotUndoable.
	ChangeConnectionPage(ctx context.Context, p Stored, undone string, e audit.Entry) error
}
