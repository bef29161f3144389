// Package connpage is the page on which an app's user connects glasses: its config, its look, and the one HTML file
// that is hosted here, previewed in the dashboard and shipped with apps. It knows neither accounts nor SQL.
package connpage

import (
	"errors"
	"time"
)

// Errors that callers branch on.
var (
	// ErrConflict: the config is not at the version that the change was made for; see ConflictError.
	ErrConflict = errors.New("the page has changed since it was read")
	// ErrNotFound: no page has this id.
	ErrNotFound = errors.New("there is no such page")
	// ErrNotUndoable: the entry is no change of this page, or was undone.
	ErrNotUndoable = errors.New("there is nothing to undo")
)

// ConflictError is ErrConflict with the version that stands.
type ConflictError struct{ Current int64 }

// Error says what happened.
func (e *ConflictError) Error() string { return ErrConflict.Error() }

// Is makes it an ErrConflict.
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// InvalidError is a value that can never work; Message says why.
type InvalidError struct{ Field, Message string }

// Error gives the message.
func (e *InvalidError) Error() string { return e.Message }

// Page is a project's. Version counts changes, 0 for the defaults. PageID is in the hosted page's address and tells
// nothing of the account.
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

// Phrase is something that the app's user can say, and what it does.
type Phrase struct{ Phrase, Does string }

// Toggle is a switch that the app's user sees; On is its state at first.
type Toggle struct {
	ID, Label string
	On        bool
}

// Change holds the fields to change; nil leaves one as it is.
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
