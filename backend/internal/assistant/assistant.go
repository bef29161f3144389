// Package assistant manages the settings of a project's voice assistant: models, voice, memory and sounds, chosen from
// a catalogue that the operator configures. It knows the names of the fields, but not who may change them, nor HTTP or
// SQL.
package assistant

import (
	"errors"
	"time"
)

// Errors that callers check for.
var (
	// ErrConflict is returned for a change of an old version of the config; see ConflictError.
	ErrConflict = errors.New("the config has changed since it was read")
	// ErrNoProject is returned for a project that does not exist, e.g. because it was deleted meanwhile.
	ErrNoProject = errors.New("no such project")
	// ErrNotUndoable is returned for an entry that is not a change of this config or was undone already.
	ErrNotUndoable = errors.New("there is nothing to undo")
)

// Actions of audit entries.
const (
	ActionChanged = "assistant.changed"
	ActionUndone  = "assistant.undone"
)

// ConflictError is ErrConflict with the current version.
type ConflictError struct{ Current int64 }

// Error says what happened.
func (e *ConflictError) Error() string { return ErrConflict.Error() }

// Is makes it an ErrConflict.
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// InvalidError reports a value that is not accepted; Message lists the valid ones. Tells is another field whose current
// value Message reveals, or empty: a caller who may not read that field must not see Message.
type InvalidError struct{ Field, Message, Tells string }

// Error returns the message.
func (e *InvalidError) Error() string { return e.Message }

// Config is a project's config. Version counts changes, 0 for the catalogue's defaults.
type Config struct {
	Project       string
	Version       int64
	RealtimeModel string
	Voice         string
	MemoryModel   string
	TextModel     string // what the gateway's model "assistant" means; "" for the operator's default
	SessionMemory bool
	Sounds        bool
	UpdatedAt     time.Time // zero if never changed
	UpdatedBy     string    // for people: "you", "agent on laptop"
}

// Change holds the fields to change; nil leaves a field unchanged.
type Change struct {
	Version       int64
	RealtimeModel *string
	Voice         *string
	MemoryModel   *string
	TextModel     *string
	SessionMemory *bool
	Sounds        *bool
}
