package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/config"
)

// Error is an error in the form shown to the agent.
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
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// invalid returns an error about arguments.
func invalid(message, hint string) error {
	return &Error{Code: CodeInvalidRequest, Message: message, FixHint: hint}
}

// missing returns the error for a missing argument.
func missing(argument, hint string) error {
	return invalid(fmt.Sprintf("argument %q is missing", argument), hint)
}

// Codes of errors that the catalogue itself returns.
const (
	CodeInvalidRequest = "invalid_request"
	CodeInvalidConfig  = "invalid_config"
	CodeCancelled      = "cancelled"
	CodeInternal       = "internal_error"
)

// outcome is implemented by answers that are neither a plain success nor an error.
type outcome interface{ outcome() string }

// illustrated is implemented by answers with pictures.
type illustrated interface{ images() []Image }

func resultOf(out any, err error) Result {
	if errors.Is(err, ErrDeferred) {
		return Result{Structured: json.RawMessage("{}"), Outcome: OutcomeDeferred}
	}
	if err != nil {
		return failure(errorOf(err))
	}
	data, err := json.Marshal(out)
	if err != nil {
		return failure(&Error{Code: CodeInternal, Message: "writing the answer: " + err.Error(),
			FixHint: "report this with the daemon's log (servicectl daemon logs)"})
	}
	data = withoutData(data)
	result := Result{Structured: data, Text: string(data), Outcome: OutcomeOK}
	if o, ok := out.(outcome); ok {
		result.Outcome = o.outcome()
	}
	if i, ok := out.(illustrated); ok {
		result.Images = i.images()
	}
	return result
}

// maxErrorText is the maximum length of message and fixHint in bytes. They are limited because they may quote the
// caller's text.
const maxErrorText = 600

func failure(e *Error) Result {
	short := *e
	short.Message, short.FixHint = cut(e.Message, maxErrorText), cut(e.FixHint, maxErrorText)
	data, err := json.Marshal(short)
	if err != nil {
		data = []byte(`{}`)
	}
	return Result{IsError: true, Structured: data, Text: string(data), Outcome: e.Code}
}

// errorOf converts any error to an Error with a code and a next step.
func errorOf(err error) *Error {
	var own *Error
	if errors.As(err, &own) {
		return own
	}
	if p := problemOf(err); p != nil {
		hint := p.FixHint
		if hint == "" {
			hint = hintOf(p.Code, p.Retryable)
		}
		e := &Error{
			Code: p.Code, Message: p.Message, Retryable: p.Retryable, FixHint: hint,
			Capability: p.Capability, Field: p.Field, Needed: p.Needed, Granted: p.Granted,
		}
		if p.Code == backend.CodeVersionConflict {
			e.CurrentVersion = &p.CurrentVersion
		}
		return e
	}
	var setting *config.Error
	if errors.As(err, &setting) {
		hint := "correct the setting in " + setting.Source + ", then repeat the call"
		if setting.Fix != "" {
			hint = setting.Fix
		}
		return &Error{Code: CodeInvalidConfig, Message: setting.Error(), FixHint: hint}
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return &Error{Code: CodeCancelled, Message: "the call was cancelled", Retryable: true,
			FixHint: "repeat the call if you still need its answer"}
	}
	return &Error{Code: CodeInternal, Message: err.Error(), FixHint: "check the daemon's log (servicectl daemon logs)"}
}

// hints are the next steps for problems without one.
var hints = map[string]string{
	backend.CodeUnreachable: "check the network and that the backend is up (servicectl status), then repeat " +
		"the call",
	backend.CodeInvalidResponse:    "the backend and this version are not compatible; update the service",
	backend.CodeRateLimited:        "wait a little, then repeat the call",
	backend.CodeAdapterUnavailable: "run servicectl status to see what is wrong with the adapter, then repeat the call",
}

func hintOf(code string, retryable bool) string {
	if hint := cmp.Or(linkHints[code], hints[code]); hint != "" {
		return hint
	}
	if retryable {
		return "repeat the call in a moment"
	}
	return "change the call as described in the message; repeating it unchanged does not help"
}

// stamp formats a time as RFC 3339 in UTC.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// stampOrNull returns nil, which is null in JSON, for the zero time.
func stampOrNull(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	return new(stamp(t))
}

// stampOf returns nil for nil.
func stampOf(t *time.Time) *string {
	if t == nil {
		return nil
	}
	return stampOrNull(*t)
}

// problemOf returns the backend's refusal wrapped by an error, or nil.
func problemOf(err error) *backend.Problem {
	var p *backend.Problem
	if errors.As(err, &p) {
		return p
	}
	return nil
}
