// Package assistant is how a project's voice assistant is set: models, voice, memory, sounds, chosen from a catalogue
// that the operator configures. It knows the names of the fields and not who may change them, neither HTTP nor SQL.
package assistant

import (
	"errors"
	"time"
)

// Errors that callers branch on.
var (
	// ErrConflict: the config is not at the version that the change was made for; see ConflictError.
	ErrConflict = errors.New("the config has changed since it was read")
	// ErrNoProject: the account has no such project, e.g. because it was deleted meanwhile.
	ErrNoProject = errors.New("no such project")
	// ErrNotUndoable: the entry is no change of this config, or was undone.
	ErrNotUndoable = errors.New("there is nothing to undo")
)

// Actions of audit entries.
const (
	ActionChanged = "assistant.changed"
	ActionUndone  = "assistant.undone"
)

// ConflictError is ErrConflict with the version that stands.
type ConflictError struct{ Current int64 }

// Error says what happened.
func (e *ConflictError) Error() string { return ErrConflict.Error() }

// Is makes it an ErrConflict.
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// InvalidError is a value that can never work; Message says which are valid. Tells is the other field whose standing
// value Message gives away, empty for none: who may not read that one must not read Message.
type InvalidError struct{ Field, Message, Tells string }

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
