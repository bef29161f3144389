package assistant

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
)

// Stored is a config as the store keeps it: By changed it last, and Host is that agent's, empty for others.
type Stored struct {
	Config
	By   audit.Actor
	Host string
}

// Store keeps configs. Every method is atomic.
type Store interface {
	// AssistantConfig gives a project's config; its Version is 0 when nobody has changed it.
	AssistantConfig(ctx context.Context, accountID, project string) (Stored, error)
	// SaveAssistant stores a config of version n over version n-1, with the entry that tells of it, or answers a
	// *ConflictError or ErrNoProject.
	SaveAssistant(ctx context.Context, accountID string, s Stored, e audit.Entry) error
	// UndoAssistant is SaveAssistant that marks the entry undone as taken back by e: ErrNotUndoable when it was already.
	UndoAssistant(ctx context.Context, accountID string, s Stored, e audit.Entry, undone string) error
}

// Service reads and changes configs. The callers have found the project to be of the account, and its id to be no alias.
type Service struct {
	Store     Store
	Catalogue Catalogue
	Now       func() time.Time
}

// Choices is what can be chosen.
func (s *Service) Choices() Catalogue { return s.Catalogue }

// Get gives a project's config, or the catalogue's defaults.
func (s *Service) Get(ctx context.Context, account, project string) (Config, error) {
	stored, err := s.Store.AssistantConfig(ctx, account, project)
	if err != nil {
		return Config{}, fmt.Errorf("reading assistant config: %w", err)
	}
	if stored.Version == 0 {
		d := s.Catalogue.Defaults
		return Config{Project: project, RealtimeModel: d.RealtimeModel, Voice: d.Voice, MemoryModel: d.MemoryModel,
			SessionMemory: d.SessionMemory, Sounds: d.Sounds}, nil
	}
	c := stored.Config
	c.UpdatedBy = words(stored.By, stored.Host)
	return c, nil
}

// Change changes the fields that c names and gives the config before and after. The error may be a *ConflictError, an
// *InvalidError or ErrNoProject. Fields that have their new value already make no new version.
func (s *Service) Change(ctx context.Context, account, project string, c Change, by audit.Actor) (before, after Config, err error) {
	if before, err = s.Get(ctx, account, project); err != nil {
		return Config{}, Config{}, err
	}
	if c.empty() {
		return Config{}, Config{}, &InvalidError{Message: "the change is empty: name a field to change"}
	}
	if c.Version != before.Version {
		return Config{}, Config{}, &ConflictError{before.Version}
	}
	after, diff := c.apply(before)
	if len(diff) == 0 {
		return before, before, nil
	}
	if err := s.Catalogue.fits(before, after); err != nil {
		return Config{}, Config{}, err
	}
	next, e, err := s.next(account, after, diff, by, ActionChanged)
	if err != nil {
		return Config{}, Config{}, err
	}
	if err := s.Store.SaveAssistant(ctx, account, next, e); err != nil {
		return Config{}, Config{}, fmt.Errorf("saving assistant config: %w", err)
	}
	after, err = s.Get(ctx, account, project)
	return before, after, err
}

// Undo puts back what the fields of a change were before it, as a new version. ErrConflict when one of them was changed
// again since, ErrNotUndoable, or an *InvalidError when the old value is no longer offered.
func (s *Service) Undo(ctx context.Context, account string, e audit.Entry, by audit.Actor) error {
	if (e.Action != ActionChanged && e.Action != ActionUndone) || e.AccountID != account || !e.Undoable() {
		return ErrNotUndoable
	}
	was, err := readFields(e.Before)
	if err != nil {
		return err
	}
	became, err := readFields(e.After)
	if err != nil {
		return err
	}
	now, err := s.Get(ctx, account, e.Project)
	if err != nil {
		return err
	}
	if _, diff := became.apply(now); len(diff) > 0 {
		return &ConflictError{now.Version}
	}
	after, diff := was.apply(now)
	if len(diff) == 0 {
		return ErrNotUndoable
	}
	if err := s.Catalogue.fits(now, after); err != nil {
		return err
	}
	next, undo, err := s.next(account, after, diff, by, ActionUndone)
	if err != nil {
		return err
	}
	if err := s.Store.UndoAssistant(ctx, account, next, undo, e.ID); err != nil {
		return fmt.Errorf("undoing a change of the assistant: %w", err)
	}
	return nil
}

// next is the version to store, and the entry that tells of it.
func (s *Service) next(account string, after Config, diff []difference, by audit.Actor, action string) (Stored, audit.Entry, error) {
	now := s.Now().UTC().Truncate(time.Millisecond)
	after.Version++
	after.UpdatedAt = now
	before, became, err := fieldsOf(diff)
	if err != nil {
		return Stored{}, audit.Entry{}, err
	}
	e := audit.New(now, account, by, action, after.Project, summary(diff))
	e.Before, e.After = before, became
	return Stored{Config: after, By: by}, e, nil
}

// Cost is what a minute of conversation costs with a config, in micro-dollars; nil while a price is not set or a model
// is no longer offered.
func (s *Service) Cost(c Config) *int64 {
	realtime, memory := s.Catalogue.realtime(c.RealtimeModel), s.Catalogue.memory(c.MemoryModel)
	if realtime == nil || memory == nil || realtime.Price == nil || memory.Price == nil {
		return nil
	}
	sum := *realtime.Price + *memory.Price
	return &sum
}

// words says to the account holder who changed a config.
func words(by audit.Actor, host string) string {
	switch by.Kind {
	case audit.KindPerson:
		return "you"
	case audit.KindAgent:
		if host == "" {
			return "agent"
		}
		return "agent on " + host
	case audit.KindOperator:
		return "the operator"
	}
	return "the backend"
}

func readFields(data json.RawMessage) (fields, error) {
	var f fields
	if err := json.Unmarshal(data, &f); err != nil {
		return f, fmt.Errorf("reading an audit entry of the assistant: %w", err)
	}
	return f, nil
}
