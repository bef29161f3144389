// Package connpage manages the page on which an app's user connects glasses: its settings, its look, and the HTML file
// that is hosted here, previewed in the dashboard and shipped with apps. It knows neither accounts nor SQL.
package connpage

import (
	"errors"
	"time"
)

// Errors that callers check for.
var (
	// ErrConflict is returned for a change of an old version of the page; see ConflictError.
	ErrConflict = errors.New("the page has changed since it was read")
	// ErrNotFound is returned if no page has the id.
	ErrNotFound = errors.New("there is no such page")
	// ErrNotUndoable is returned for an entry that is not a change of this page, or was undone already.
	ErrNotUndoable = errors.New("there is nothing to undo")
)

// ConflictError is ErrConflict with the current version.
type ConflictError struct{ Current int64 }

// Error says what happened.
func (e *ConflictError) Error() string { return ErrConflict.Error() }

// Is makes it an ErrConflict.
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// InvalidError reports a value that is never accepted; Message says why.
type InvalidError struct{ Field, Message string }

// Error returns the message.
func (e *InvalidError) Error() string { return e.Message }

// Page is a project's connection page. Version counts changes, 0 for the defaults. PageID is in the hosted page's
// address and reveals nothing about the account.
type Page struct {
	Project      string
	PageID       string // cp_...
	Version      int64
	Title        string
	Description  string
	Theme        string // auto | light | dark
	Accent       string // #rrggbb
	Capabilities []string
	Phrases      []Phrase
	Toggles      []Toggle
	SupportURL   string
	PrivacyURL   string
	UpdatedAt    time.Time // zero: never
	UpdatedBy    string    // for people: "you", "agent on laptop"
}

// Phrase is something that the app's user can say, and its effect.
type Phrase struct{ Phrase, Does string }

// Toggle is a switch that the app's user sees; On is its initial state.
type Toggle struct {
	ID, Label string
	On        bool
}

// Change holds the fields to change; nil leaves a field unchanged.
type Change struct {
	Version      int64
	Title        *string
	Description  *string
	Theme        *string
	Accent       *string
	Capabilities *[]string
	Phrases      *[]Phrase
	Toggles      *[]Toggle
	SupportURL   *string
	PrivacyURL   *string
}
