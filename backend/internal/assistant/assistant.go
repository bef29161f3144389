// Package assistant is how a project's voice assistant is set: models, voice, memory, sounds, chosen from a catalogue
// that the operator configures. It knows neither grants nor HTTP nor SQL.
package assistant

import (
	"errors"
	"time"
)

// Errors that callers branch on.
var (
	// ErrConflict: the config is not at the version that the change was made for; see ConflictError.
	ErrConflict = errors.New("the config has changed since it was read")
	// ErrNotUndoable: the entry is no change of this config, or was undone.
	ErrNotUndoable = errors.New("there is nothing to undo")
)

// ConflictError is ErrConflict with the version that stands.
type ConflictError struct{ Current int64 }

// Error says what happened.
func (e *ConflictError) Error() string { return ErrConflict.Error() }

// Is makes it an ErrConflict.
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// InvalidError is a value that can never work; Message says which are valid.
type InvalidError struct{ Field, Message string }

// Error gives the message.
func (e *InvalidError) Error() string { return e.Message }

// Config is a project's. Version counts changes, 0 for the catalogue's defaults that nobody changed.
type Config struct {
	Project       string
	Version       int64
	RealtimeModel string
	Voice         string
	MemoryModel   string
	SessionMemory bool
	Sounds        bool
	UpdatedAt     time.Time // zero: never
	UpdatedBy     string    // for people: "you", "agent on laptop"
}

// Change holds the fields to change; nil leaves one as it is.
type Change struct {
	Version       int64
	RealtimeModel *string
	Voice         *string
	MemoryModel   *string
	SessionMemory *bool
	Sounds        *bool
}

// Catalogue is what can be chosen.
type Catalogue struct {
	RealtimeModels []Model
	MemoryModels   []Model
	Voices         []Voice
}

// Model is one choice. Price is micro-dollars for a minute of conversation, nil while none is set.
type Model struct {
	ID, Name, Description string
	Voices                []string // realtime models only
	Price                 *int64
}

// Voice is one voice.
type Voice struct{ ID, Name, Description string }
