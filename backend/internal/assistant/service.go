package assistant

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
)

// Stored is a stored config. By is the actor who made the last change. Host is that agent's computer, or empty.
type Stored struct {
	Config
	By   audit.Actor
	Host string
}

// Service reads and changes configs. Callers must check that the project belongs to the account and that its ID is not
// an alias.
type Service struct {
	Store     *Store
	Catalogue Catalogue
	// TextModels returns the gateway's models for a project, and the ID of the default one or "". It is nil if there
	// is no gateway.
	TextModels func(ctx context.Context, account, project string) (models []TextModel, standard string, err error)
	// RealtimeModels returns the gateway's models for realtime sessions. It is nil if there is no gateway.
	RealtimeModels func(ctx context.Context, account, project string) ([]Offer, error)
	// Remembers reports whether the backend can store what apps remember about their users. It is nil if it cannot.
	Remembers func() bool
	Now       func() time.Time
}

// Choices returns the models and voices that can be chosen for a project.
func (s *Service) Choices(ctx context.Context, account, project string) (c Catalogue, err error) {
	c = s.Catalogue
	if s.TextModels != nil {
		if c.TextModels, c.DefaultText, err = s.TextModels(ctx, account, project); err != nil {
			return Catalogue{}, fmt.Errorf("read text models: %w", err)
		}
	}
	offers, err := s.offers(ctx, account, project)
	if err != nil {
		return Catalogue{}, err
	}
	c.noteEffects(offers, s.Remembers != nil && s.Remembers())
	return c, nil
}

// Get returns a project's config, or the catalogue's defaults.
func (s *Service) Get(ctx context.Context, account, project string) (Config, error) {
	stored, err := s.Store.AssistantConfig(ctx, account, project)
	if err != nil {
		return Config{}, fmt.Errorf("read assistant config: %w", err)
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

// Change sets the fields of c and returns the config before and after. If no value changes, it creates no new
// version. It may return a *ConflictError, an *InvalidError or ErrNoProject.
func (s *Service) Change(
	ctx context.Context, account, project string, c Change, by audit.Actor,
) (before, after Config, err error) {
	if before, err = s.Get(ctx, account, project); err != nil {
		return Config{}, Config{}, err
	}
	if c.empty() {
		return Config{}, Config{}, &InvalidError{Message: "the change is empty, include at least one field"}
	}
	if c.Version != before.Version {
		return Config{}, Config{}, &ConflictError{before.Version}
	}
	after, diff := c.apply(before)
	if len(diff) == 0 {
		return before, before, nil
	}
	if err := s.fits(ctx, account, before, after); err != nil {
		return Config{}, Config{}, err
	}
	next, e, err := s.next(account, after, diff, by, ActionChanged)
	if err != nil {
		return Config{}, Config{}, err
	}
	if err := s.Store.SaveAssistant(ctx, account, next, e); err != nil {
		return Config{}, Config{}, fmt.Errorf("save assistant config: %w", err)
	}
	after, err = s.Get(ctx, account, project)
	return before, after, err
}

// Undo creates a new version with the values from before a change. It returns ErrConflict if one of the fields
// has been changed again, ErrNotUndoable, or an *InvalidError if an old value is no longer offered.
func (s *Service) Undo(ctx context.Context, account string, e audit.Entry, by audit.Actor) error {
	if (e.Action != ActionChanged && e.Action != ActionUndone) || e.AccountID != account || !e.Undoable() {
		return ErrNotUndoable
	}
	was, wasErr := readFields(e.Before)
	became, becameErr := readFields(e.After)
	if err := errors.Join(wasErr, becameErr); err != nil {
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
	if err := s.fits(ctx, account, now, after); err != nil {
		return err
	}
	next, undo, err := s.next(account, after, diff, by, ActionUndone)
	if err != nil {
		return err
	}
	if err := s.Store.UndoAssistant(ctx, account, next, undo, e.ID); err != nil {
		return fmt.Errorf("undo assistant change: %w", err)
	}
	return nil
}

// fits returns an *InvalidError unless every changed value is offered.
func (s *Service) fits(ctx context.Context, account string, before, after Config) error {
	choices, err := s.Choices(ctx, account, before.Project)
	if err != nil {
		return err
	}
	return choices.fits(before, after)
}

// next returns the version to store and its entry.
func (s *Service) next(
	account string, after Config, diff []difference, by audit.Actor, action string,
) (Stored, audit.Entry, error) {
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

// Cost returns the price of a minute of conversation with a config, in micro-dollars. It returns nil if a price is not
// set or a model is no longer offered.
func (s *Service) Cost(c Config) *int64 {
	realtime, memory := s.Catalogue.realtime(c.RealtimeModel), s.Catalogue.memory(c.MemoryModel)
	if realtime == nil || memory == nil || realtime.Price == nil || memory.Price == nil {
		return nil
	}
	sum := *realtime.Price + *memory.Price
	return &sum
}

// words returns the name of an actor as shown to the account holder, such as "you" or "agent on laptop".
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
		return f, fmt.Errorf("parse audit entry of an assistant change: %w", err)
	}
	return f, nil
}
