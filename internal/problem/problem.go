// Package problem defines the error that users, agents and pages see, and the table of its codes (codes.go). Programs
// that must start fast import it, so it imports only small packages.
package problem

import (
	"errors"
	"time"
)

// Error is an error with a code for programs, a message for people, and the next step. Callers branch on Code.
type Error struct {
	Code      string `json:"code" jsonschema:"auth_required, or the code of an error."`
	Message   string `json:"message" jsonschema:"What happened."`
	Retryable bool   `json:"retryable" jsonschema:"Whether the same call may succeed later."`
	FixHint   string `json:"fixHint" jsonschema:"The next step."`

	Capability string `json:"capability,omitempty" jsonschema:"With permission_denied: the missing grant."`
	Field      string `json:"field,omitempty" jsonschema:"With permission_denied: the field concerned; absent: all."`
	Needed     string `json:"needed,omitempty" jsonschema:"With permission_denied: the level that the call needs."`
	Granted    string `json:"granted,omitempty" jsonschema:"With permission_denied: the level that the owner set."`

	CurrentVersion *int64 `json:"currentVersion,omitempty" jsonschema:"With version_conflict: the current version."`

	HTTPStatus int           `json:"-"` // of a backend's answer; 0 if there was none
	RetryAfter time.Duration `json:"-"` // 0 if unknown, or if waiting does not help
	// Untrusted reports, for CodeBackendUnreachable, that a certificate is from an unknown authority.
	Untrusted bool `json:"-"`
	// Err is the cause, for callers that need it. It is not shown.
	Err error `json:"-"`
}

// Error returns the message, which contains neither the code nor secrets.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// New returns an error that is retryable if its code is.
func New(code, message, fixHint string) *Error {
	return &Error{Code: code, Message: message, Retryable: Of(code).Retryable, FixHint: fixHint}
}

// CodeOf returns the code of the Error that err wraps, or "" if it wraps none.
func CodeOf(err error) string {
	if e := From(err); e != nil {
		return e.Code
	}
	return ""
}

// From returns the Error that err wraps, or nil if it wraps none.
func From(err error) *Error {
	var e *Error
	errors.As(err, &e)
	return e
}
