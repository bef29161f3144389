// Package connpage manages the page on which an app's user connects glasses: its settings, its appearance, and its
// HTML file. The backend hosts the file, the dashboard shows a preview of it, and apps include it. The package
// contains no account or SQL code.
package connpage

import (
	"errors"
	"time"
)

// Errors that callers check for.
var (
	// ErrConflict is returned for a change to an outdated version of the page; see ConflictError.
	ErrConflict = errors.New("the page has changed since it was read")
	// ErrNotFound is returned if no page has the ID.
	ErrNotFound = errors.New("no such page")
	// ErrNotUndoable is returned for an entry that is not a change of this page or was already undone.
	ErrNotUndoable = errors.New("there is nothing to undo")
)

// ConflictError is an ErrConflict that includes the current version.
type ConflictError struct{ Current int64 }

// Error returns the text of ErrConflict.
func (e *ConflictError) Error() string { return ErrConflict.Error() }

// Is reports whether target is ErrConflict.
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// InvalidError reports an invalid value. Message contains the reason.
type InvalidError struct{ Field, Message string }

// Error returns the message.
func (e *InvalidError) Error() string { return e.Message }

// Page is a project's connection page. Version counts the changes; 0 means the defaults. PageID is part of the hosted
// page's address and reveals nothing about the account.
type Page struct {
	Project      string
	PageID       string // cp_...
	Version      int64
	Title        string
	Description  string
	Theme        string // auto, light or dark
	Accent       string // #rrggbb
	Capabilities []string
	Phrases      []Phrase
	Toggles      []Toggle
	SupportURL   string
	PrivacyURL   string
	UpdatedAt    time.Time // zero if never changed
	UpdatedBy    string    // for display: "you", "agent on laptop"
}

// Phrase is a phrase that the app's user can say. Does describes its effect.
type Phrase struct{ Phrase, Does string }

// Toggle is a switch shown to the app's user. On is its initial state.
type Toggle struct {
	ID, Label string
	On        bool
}

// Change holds new values of fields. A nil field stays unchanged.
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
