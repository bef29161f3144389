package credit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/service-dev/service/backend/internal/audit"
)

// Actions in audit entries.
const (
	actionCapsChanged = "credit.caps_changed"
	actionCapsUndone  = "credit.caps_undone"
)

var (
	// ErrConflict is returned for a change to an outdated version of the caps; see ConflictError.
	ErrConflict = errors.New("the caps have changed since they were read")
	// ErrNotUndoable is returned for an entry that is not a change of caps or was already undone.
	ErrNotUndoable = errors.New("there is nothing to undo")
)

// ConflictError is an ErrConflict that includes the current version.
type ConflictError struct{ Current int64 }

func (e *ConflictError) Error() string { return ErrConflict.Error() }

// Is reports whether target is ErrConflict.
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// SetCaps sets the caps of a project, or of the account if project is empty. c.Version is the version of the caps that
// the caller read. If a cap is below the amount already spent, calls are refused until the cap resets. SetCaps returns
// ErrBadAmount for a cap that is not between 0 and MaxAmount, a *ConflictError, ErrNoAccount or projects.ErrNotFound.
// Unchanged caps create no new version. The caller must check that the project's ID is not an alias.
func (l *Ledger) SetCaps(ctx context.Context, accountID, project string, c Caps, by audit.Actor) error {
	if project == "" {
		c.Keys = nil
	}
	for _, one := range []*Amount{c.Day, c.Month, c.Keys} {
		if one != nil && (*one < 0 || *one > MaxAmount) {
			return fmt.Errorf("set caps: %w", ErrBadAmount)
		}
	}
	before, err := l.o.Store.CreditCaps(ctx, accountID, project)
	switch {
	case err != nil:
		return fmt.Errorf("read caps: %w", err)
	case before.Version != c.Version:
		return &ConflictError{before.Version}
	}
	return l.saveCaps(ctx, accountID, project, before, c, by, actionCapsChanged, "")
}

// UndoCaps restores the caps that a change replaced. It returns a *ConflictError if one of them has been changed again,
// or ErrNotUndoable.
func (l *Ledger) UndoCaps(ctx context.Context, accountID string, e audit.Entry, by audit.Actor) error {
	if e.Action != actionCapsChanged && e.Action != actionCapsUndone || e.AccountID != accountID || !e.Undoable() {
		return ErrNotUndoable
	}
	var was, became map[string]*Amount
	if err := errors.Join(json.Unmarshal(e.Before, &was), json.Unmarshal(e.After, &became)); err != nil {
		return fmt.Errorf("read audit entry of caps: %w", err)
	}
	now, err := l.o.Store.CreditCaps(ctx, accountID, e.Project)
	if err != nil {
		return fmt.Errorf("read caps: %w", err)
	}
	next := now
	for name, at := range next.fields() {
		if _, changed := was[name]; !changed {
			continue
		}
		if !equal(*at, became[name]) {
			return &ConflictError{now.Version}
		}
		*at = was[name]
	}
	return l.saveCaps(ctx, accountID, e.Project, now, next, by, actionCapsUndone, e.ID)
}

// saveCaps replaces the earlier caps and stores an audit entry that can be undone.
func (l *Ledger) saveCaps(
	ctx context.Context, accountID, project string, before, after Caps, by audit.Actor, action, undone string,
) error {
	was, became := map[string]*Amount{}, map[string]*Amount{}
	var changes []string
	for _, name := range []string{CapDay, CapMonth, CapKeys} {
		if from, to := *before.fields()[name], *after.fields()[name]; !equal(from, to) {
			was[name], became[name] = from, to
			what := "cap of a " + name
			if name == CapKeys {
				what = "daily allowance of project keys"
			}
			changes = append(changes, fmt.Sprintf("%s: %s -> %s", what, capText(from), capText(to)))
		}
	}
	if len(changes) == 0 {
		return nil
	}
	e := audit.New(l.now(), accountID, by, action, project, strings.Join(changes, "; "))
	var err error
	if e.Before, err = json.Marshal(was); err == nil {
		e.After, err = json.Marshal(became)
	}
	if err == nil {
		err = l.withBook(ctx, accountID, func() error { return l.o.Store.SetCreditCaps(ctx, after, e, undone) })
	}
	if err != nil {
		return fmt.Errorf("set caps: %w", err)
	}
	return nil
}

// fields maps the names used in audit entries to the caps.
func (c *Caps) fields() map[string]**Amount {
	return map[string]**Amount{CapDay: &c.Day, CapMonth: &c.Month, CapKeys: &c.Keys}
}

func equal(a, b *Amount) bool { return a == b || a != nil && b != nil && *a == *b }

func capText(c *Amount) string {
	if c == nil {
		return "none"
	}
	return c.String() + " USD"
}
