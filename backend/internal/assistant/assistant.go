// Package assistant manages the settings of a project's voice assistant: models, voice, memory and sounds. The
// operator configures a catalogue of the choices. The package does not check who may change the settings, and
// contains no HTTP or SQL code.
package assistant

import (
	"errors"
	"time"
)

// Errors that callers check for.
var (
	// ErrConflict is returned for a change to an outdated version of the config; see ConflictError.
	ErrConflict = errors.New("the config has changed since it was read")
	// ErrNoProject is returned for a project that does not exist, for example because it was deleted in the meantime.
	ErrNoProject = errors.New("no such project")
	// ErrNotUndoable is returned for an audit entry that is not a change of this config or was already
	// undone.
	ErrNotUndoable = errors.New("there is nothing to undo")
)

// NoMemory is the ID of the memory model with which nothing is remembered.
const NoMemory = "memory-none"

// Actions in audit entries.
const (
	ActionChanged = "assistant.changed"
	ActionUndone  = "assistant.undone"
)

// ConflictError is an ErrConflict that includes the current version.
type ConflictError struct{ Current int64 }

// Error returns the text of ErrConflict.
func (e *ConflictError) Error() string { return ErrConflict.Error() }

// Is reports whether target is ErrConflict.
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// InvalidError reports an invalid value. Message lists the valid values. If Tells is not empty, Message reveals
// the current value of the field Tells, and must be hidden from callers who may not read that field.
type InvalidError struct{ Field, Message, Tells string }

// Error returns the message.
func (e *InvalidError) Error() string { return e.Message }

// Config is a project's config. Version counts the changes; 0 means the catalogue's defaults.
type Config struct {
	Project       string
	Version       int64
	RealtimeModel string
	Voice         string
	MemoryModel   string
	TextModel     string // ID of the gateway's model "assistant"; "" for the operator's default
	SessionMemory bool
	Sounds        bool
	UpdatedAt     time.Time // zero if never changed
	UpdatedBy     string    // for display: "you", "agent on laptop"
}

// Change holds new values of fields. A nil field stays unchanged.
type Change struct {
	Version       int64
	RealtimeModel *string
	Voice         *string
	MemoryModel   *string
	TextModel     *string
	SessionMemory *bool
	Sounds        *bool
}
