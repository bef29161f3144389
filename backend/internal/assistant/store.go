package assistant

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/db"
	"github.com/service-dev/service/backend/internal/projects"
)

// Store stores the configs of assistants. Every method is atomic.
type Store struct{ *db.DB }

// NewStore returns a store in d.
func NewStore(d *db.DB) *Store { return &Store{d} }

// AssistantConfig returns a project's config. Its version is 0 if it was never changed.
func (s *Store) AssistantConfig(ctx context.Context, accountID, project string) (Stored, error) {
	initial := Stored{Config: Config{Project: project}}
	config, err := db.One(ctx, s, sql.ErrNoRows, func(row db.Row) (Stored, error) {
		c := initial
		err := row.Scan(&c.Version, &c.RealtimeModel, &c.Voice, &c.MemoryModel, &c.TextModel, &c.SessionMemory,
			&c.Sounds, db.IntoTime(&c.UpdatedAt), &c.By.Kind, &c.By.LinkID, db.IntoText(&c.Host))
		return c, err
	}, `SELECT c.version, c.realtime_model, c.voice, c.memory_model, c.text_model, c.session_memory,
			c.sounds, c.updated_at, c.updated_by, c.updated_link, l.host
		FROM assistant_configs c LEFT JOIN links l ON l.id = c.updated_link AND l.account_id = c.account_id
		WHERE c.account_id = $1 AND c.app_id = $2`, accountID, project)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return initial, nil
	case err != nil:
		return Stored{}, fmt.Errorf("read assistant config: %w", err)
	}
	return config, nil
}

// SaveAssistant replaces version n-1 of a config with version n and writes its audit entry. It returns a
// *ConflictError or ErrNoProject on failure.
func (s *Store) SaveAssistant(ctx context.Context, accountID string, c Stored, e audit.Entry) error {
	return s.Write(ctx, func(tx *sql.Tx) error { return saveAssistant(ctx, tx, accountID, c, e) })
}

// UndoAssistant is like SaveAssistant, and also records that e undid the entry undone. It returns ErrNotUndoable if
// that entry was already undone.
func (s *Store) UndoAssistant(
	ctx context.Context, accountID string, c Stored, e audit.Entry, undone string,
) error {
	return s.Write(ctx, func(tx *sql.Tx) error {
		if err := audit.MarkUndone(ctx, tx, ErrNotUndoable, accountID, undone, e.ID); err != nil {
			return err
		}
		return saveAssistant(ctx, tx, accountID, c, e)
	})
}

func saveAssistant(ctx context.Context, tx *sql.Tx, accountID string, c Stored, e audit.Entry) error {
	if err := projects.Lock(ctx, tx, ErrNoProject, accountID, c.Project); err != nil {
		return err
	}
	values := []any{
		accountID, c.Project, c.Version, c.RealtimeModel, c.Voice, c.MemoryModel, db.BoolInt(c.SessionMemory),
		db.BoolInt(c.Sounds),
		db.ToMS(c.UpdatedAt), c.By.Kind, c.By.LinkID, c.TextModel,
	}
	text := `UPDATE assistant_configs SET version = $3, realtime_model = $4, voice = $5, memory_model = $6,
		session_memory = $7, sounds = $8, updated_at = $9, updated_by = $10, updated_link = $11,
		text_model = $12 WHERE account_id = $1 AND app_id = $2 AND version = $13`
	if c.Version == 1 {
		text = `INSERT INTO assistant_configs (account_id, app_id, version, realtime_model, voice, memory_model,
				session_memory, sounds, updated_at, updated_by, updated_link, text_model)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) ON CONFLICT (account_id, app_id) DO NOTHING`
	} else {
		values = append(values, c.Version-1)
	}
	current, err := audit.SaveVersion(ctx, tx, "assistant_configs", c.Project, e, db.Stmt(text, values...))
	if errors.Is(err, audit.ErrOtherVersion) {
		return &ConflictError{Current: current}
	}
	return err
}
