package connpage

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
)

// Actions in audit entries.
const (
	actionChanged = "page.changed"
	actionUndone  = "page.undone"
)

// Service reads and changes connection pages.
type Service struct {
	Store *Store
	Now   func() time.Time
}

func (s *Service) now() time.Time { return s.Now().UTC().Truncate(time.Millisecond) }

// Get returns the page of a project, or ErrNotFound for an unknown project. The first Get assigns the PageID.
func (s *Service) Get(ctx context.Context, account, project string) (Page, error) {
	stored, err := s.Store.ConnectionPage(ctx, account, project)
	if errors.Is(err, ErrNotFound) {
		if err := s.Store.InsertConnectionPage(ctx, Stored{AccountID: account, Project: project,
			PageID: newPageID()}); err != nil {
			return Page{}, fmt.Errorf("create page: %w", err)
		}
		stored, err = s.Store.ConnectionPage(ctx, account, project)
	}
	if err != nil {
		return Page{}, fmt.Errorf("read page: %w", err)
	}
	return stored.toPage()
}

// IsChanged reports whether the page of a project has ever been changed. Unlike Get, it stores nothing.
func (s *Service) IsChanged(ctx context.Context, account, project string) (bool, error) {
	stored, err := s.Store.ConnectionPage(ctx, account, project)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read page: %w", err)
	}
	return stored.Version > 0, nil
}

var pageIDForm = regexp.MustCompile(`^cp_[a-z2-7]{20}$`)

// ByPageID returns the page with the ID in its address, or ErrNotFound.
func (s *Service) ByPageID(ctx context.Context, id string) (Page, error) {
	if !pageIDForm.MatchString(id) {
		return Page{}, ErrNotFound
	}
	stored, err := s.Store.ConnectionPageByID(ctx, id)
	if err != nil {
		return Page{}, fmt.Errorf("read page: %w", err)
	}
	return stored.toPage()
}

// newPageID returns an ID with 100 random bits.
func newPageID() string {
	var b [13]byte
	rand.Read(b[:])
	return "cp_" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b[:]))[:20]
}

// Change changes a page and returns it before and after the change. It does not store a change that has no
// effect. It returns a *ConflictError, or an error that contains an *InvalidError for each invalid field; see
// InvalidFields.
func (s *Service) Change(
	ctx context.Context, account, project string, c Change, by audit.Actor,
) (before, after Page, err error) {
	before, err = s.Get(ctx, account, project)
	if err != nil {
		return Page{}, Page{}, err
	}
	if c.Version != before.Version {
		return Page{}, Page{}, &ConflictError{Current: before.Version}
	}
	c, err = clean(c)
	if err != nil {
		return Page{}, Page{}, err
	}
	after, err = s.store(ctx, account, before, c, "", by)
	return before, after, err
}

// Undo restores the values that were replaced by the change in an audit entry. It returns a *ConflictError if one of
// the fields has changed since, and ErrNotUndoable if the entry records no change of the page or was already undone.
func (s *Service) Undo(ctx context.Context, account string, e audit.Entry, by audit.Actor) error {
	if e.AccountID != account || !e.Undoable() || (e.Action != actionChanged && e.Action != actionUndone) {
		return ErrNotUndoable
	}
	var was, became config
	if json.Unmarshal(e.Before, &was) != nil || json.Unmarshal(e.After, &became) != nil {
		return ErrNotUndoable
	}
	now, err := s.Get(ctx, account, e.Project)
	if err != nil {
		return err
	}
	still := now
	became.change().apply(&still)
	if _, differs := difference(still, now); len(differs) > 0 {
		return &ConflictError{Current: now.Version}
	}
	_, err = s.store(ctx, account, now, was.change(), e.ID, by)
	return err
}

// store saves the changed page as its next version. undone is the ID of the audit entry that the change undoes, or
// empty.
func (s *Service) store(
	ctx context.Context, account string, before Page, c Change, undone string, by audit.Actor,
) (Page, error) {
	after := before
	c.apply(&after)
	became, names := difference(after, before)
	if len(names) == 0 && undone == "" {
		return before, nil
	}
	was, _ := difference(before, after)
	after.Version, after.UpdatedAt = before.Version+1, s.now()
	e := audit.New(after.UpdatedAt, account, by, actionChanged, before.Project, "connection page: "+strings.Join(names,
		", "))
	if undone != "" {
		e.Action, e.Summary = actionUndone, "undone: "+e.Summary
	}
	text, err := marshal(whole(after), &e, was, became)
	if err != nil {
		return Page{}, err
	}
	stored := Stored{AccountID: account, Project: before.Project, Version: after.Version, Config: text,
		UpdatedAt: after.UpdatedAt, By: by}
	if err := s.Store.ChangeConnectionPage(ctx, stored, undone, e); err != nil {
		return Page{}, fmt.Errorf("save page: %w", err)
	}
	return s.Get(ctx, account, before.Project)
}

func marshal(full config, e *audit.Entry, was, became config) (json.RawMessage, error) {
	text, err := json.Marshal(full)
	if err != nil {
		return nil, err
	}
	if e.Before, err = json.Marshal(was); err != nil {
		return nil, err
	}
	e.After, err = json.Marshal(became)
	return text, err
}
