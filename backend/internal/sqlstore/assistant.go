package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/service-dev/service/backend/internal/assistant"
	"github.com/service-dev/service/backend/internal/audit"
)

// AssistantConfig returns a project's config. Its version is 0 if it was never changed.
func (s *Store) AssistantConfig(ctx context.Context, accountID, project string) (assistant.Stored, error) {
	initial := assistant.Stored{Config: assistant.Config{Project: project}}
	config, err := queryOne(ctx, s.reads, sql.ErrNoRows, func(row scanner) (assistant.Stored, error) {
		c := initial
		err := row.Scan(&c.Version, &c.RealtimeModel, &c.Voice, &c.MemoryModel, &c.TextModel, &c.SessionMemory,
			&c.Sounds, intoTime(&c.UpdatedAt), &c.By.Kind, &c.By.LinkID, intoText(&c.Host))
		return c, err
	}, `SELECT c.version, c.realtime_model, c.voice, c.memory_model, c.text_model, c.session_memory,
			c.sounds, c.updated_at, c.updated_by, c.updated_link, l.host
		FROM assistant_configs c LEFT JOIN links l ON l.id = c.updated_link AND l.account_id = c.account_id
		WHERE c.account_id = $1 AND c.app_id = $2`, accountID, project)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return initial, nil
	case err != nil:
		return assistant.Stored{}, fmt.Errorf("read assistant config: %w", err)
	}
	return config, nil
}

// SaveAssistant replaces version n-1 of a config with version n and writes its audit entry. It returns an
// *assistant.ConflictError or assistant.ErrNoProject on failure.
func (s *Store) SaveAssistant(ctx context.Context, accountID string, c assistant.Stored, e audit.Entry) error {
	return s.write(ctx, func(tx *sql.Tx) error { return saveAssistant(ctx, tx, accountID, c, e) })
}

// UndoAssistant is like SaveAssistant and also marks an entry as undone by e. It returns assistant.ErrNotUndoable if
// the entry cannot be undone.
func (s *Store) UndoAssistant(
	ctx context.Context, accountID string, c assistant.Stored, e audit.Entry, undone string,
) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		if err := markUndone(ctx, tx, assistant.ErrNotUndoable, accountID, undone, e.ID); err != nil {
			return err
		}
		return saveAssistant(ctx, tx, accountID, c, e)
	})
}

func saveAssistant(ctx context.Context, tx *sql.Tx, accountID string, c assistant.Stored, e audit.Entry) error {
	if err := lockProject(ctx, tx, assistant.ErrNoProject, accountID, c.Project); err != nil {
		return err
	}
	values := []any{
		accountID, c.Project, c.Version, c.RealtimeModel, c.Voice, c.MemoryModel, boolInt(c.SessionMemory), boolInt(c.Sounds),
		toMS(c.UpdatedAt), c.By.Kind, c.By.LinkID, c.TextModel,
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
	current, err := saveVersion(ctx, tx, "assistant_configs", c.Project, e, stmt(text, values...))
	if errors.Is(err, errOtherVersion) {
		return &assistant.ConflictError{Current: current}
	}
	return err
}

var errOtherVersion = errors.New("another version is stored")

// saveVersion saves a version of a project's only row in a table, with its audit entry. If the statement changes no
// row, it returns errOtherVersion and the stored version.
func saveVersion(
	ctx context.Context, tx *sql.Tx, table, project string, e audit.Entry, save statement,
) (current int64, err error) {
	saved, err := changed(ctx, tx, "save version in "+table, save.text, save.args...)
	switch {
	case err != nil:
		return 0, err
	case saved:
		return 0, insertAudit(ctx, tx, e)
	}
	//nolint:gosec // constants
	current, err = queryValue[int64](ctx, tx,
		"SELECT version FROM "+table+" WHERE account_id = $1 AND app_id = $2", e.AccountID, project)
	if err := replaceNoRows(err, nil); err != nil {
		return 0, fmt.Errorf("read version in %s: %w", table, err)
	}
	return current, errOtherVersion
}
