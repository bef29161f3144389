package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/service-dev/service/backend/internal/assistant"
	"github.com/service-dev/service/backend/internal/audit"
)

// AssistantConfig gives a project's config, of version 0 when nobody has changed it.
func (s *Store) AssistantConfig(ctx context.Context, accountID, project string) (assistant.Stored, error) {
	c := assistant.Stored{Config: assistant.Config{Project: project}}
	var memory, sounds int
	var at int64
	var host sql.NullString
	err := s.reads.QueryRowContext(ctx, `SELECT c.version, c.realtime_model, c.voice, c.memory_model, c.session_memory, c.sounds,
			c.updated_at, c.updated_by, c.updated_link, l.host
		FROM assistant_configs c LEFT JOIN links l ON l.id = c.updated_link AND l.account_id = c.account_id
		WHERE c.account_id = $1 AND c.app_id = $2`, accountID, project).
		Scan(&c.Version, &c.RealtimeModel, &c.Voice, &c.MemoryModel, &memory, &sounds, &at, &c.By.Kind, &c.By.LinkID, &host)
	if errors.Is(err, sql.ErrNoRows) {
		return c, nil
	}
	if err != nil {
		return assistant.Stored{}, fmt.Errorf("reading assistant config: %w", err)
	}
	c.SessionMemory, c.Sounds, c.UpdatedAt, c.Host = memory == 1, sounds == 1, fromMS(at), host.String
	return c, nil
}

// SaveAssistant stores version n of a config over version n-1, with its entry, or answers *assistant.ConflictError or
// assistant.ErrNoProject.
func (s *Store) SaveAssistant(ctx context.Context, accountID string, c assistant.Stored, e audit.Entry) error {
	return s.write(ctx, func(tx *sql.Tx) error { return saveAssistant(ctx, tx, accountID, c, e) })
}

// UndoAssistant is SaveAssistant that marks an entry as taken back by e, or answers assistant.ErrNotUndoable.
func (s *Store) UndoAssistant(ctx context.Context, accountID string, c assistant.Stored, e audit.Entry, undone string) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		ok, err := markUndone(ctx, tx, accountID, undone, e.ID)
		if err != nil {
			return err
		}
		if !ok {
			return assistant.ErrNotUndoable
		}
		return saveAssistant(ctx, tx, accountID, c, e)
	})
}

func saveAssistant(ctx context.Context, tx *sql.Tx, accountID string, c assistant.Stored, e audit.Entry) error {
	// The no-op update locks the project's row, so that it cannot be deleted meanwhile.
	there, err := changed(ctx, tx, `UPDATE projects SET created_at = created_at WHERE account_id = $1 AND app_id = $2`, accountID, c.Project)
	if err != nil {
		return fmt.Errorf("locking project: %w", err)
	}
	if !there {
		return assistant.ErrNoProject
	}
	values := []any{accountID, c.Project, c.Version, c.RealtimeModel, c.Voice, c.MemoryModel, boolInt(c.SessionMemory), boolInt(c.Sounds),
		toMS(c.UpdatedAt), c.By.Kind, c.By.LinkID}
	statement := `UPDATE assistant_configs SET version = $3, realtime_model = $4, voice = $5, memory_model = $6, session_memory = $7,
		sounds = $8, updated_at = $9, updated_by = $10, updated_link = $11
		WHERE account_id = $1 AND app_id = $2 AND version = $12`
	if c.Version == 1 {
		statement = `INSERT INTO assistant_configs (account_id, app_id, version, realtime_model, voice, memory_model, session_memory,
			sounds, updated_at, updated_by, updated_link) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
			ON CONFLICT (account_id, app_id) DO NOTHING`
	} else {
		values = append(values, c.Version-1)
	}
	ok, err := changed(ctx, tx, statement, values...)
	if err != nil {
		return fmt.Errorf("saving assistant config: %w", err)
	}
	if ok {
		return insertAudit(ctx, tx, e)
	}
	var current int64
	err = tx.QueryRowContext(ctx, `SELECT version FROM assistant_configs WHERE account_id = $1 AND app_id = $2`, accountID, c.Project).Scan(&current)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("reading the version of an assistant config: %w", err)
	}
	return &assistant.ConflictError{Current: current}
}
