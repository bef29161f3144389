package tools

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/config"
)

// Error is a refusal as the agent reads it.
type Error struct {
	Code      string `json:"code"`
	Message   string `json:"message"`
	Retryable bool   `json:"retryable"`
	FixHint   string `json:"fixHint"`
	// With permission_denied: what agents are granted and what the call needs. Field is empty unless one is meant.
	Capability string `json:"capability,omitempty"`
	Field      string `json:"field,omitempty"`
	Needed     string `json:"needed,omitempty"`
	Granted    string `json:"granted,omitempty"`
	// CurrentVersion is the record's version now, with version_conflict.
	CurrentVersion *int64 `json:"currentVersion,omitempty"`
}

// Error says what happened.
func (e *Error) Error() string { return e.Message }

// Codes that the catalogue itself gives.
const (
	CodeInvalidArguments = "invalid_arguments"
	CodeInvalidConfig    = "invalid_config"
	CodeCancelled        = "cancelled"
	CodeInternal         = "internal_error"
)

// outcome is implemented by answers that are neither a plain success nor an error.
type outcome interface{ outcome() string }

// illustrated is implemented by answers that come with pictures.
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
		return failure(&Error{Code: CodeInternal, Message: "writing the answer: " + err.Error(), FixHint: "report this with the daemon's log (servicectl daemon logs)"})
	}
	result := Result{Structured: data, Text: string(data), Outcome: OutcomeOK}
	if o, ok := out.(outcome); ok {
		result.Outcome = o.outcome()
	}
	if i, ok := out.(illustrated); ok {
		result.Images = i.images()
	}
	return result
}

// maxErrorText bounds message and fixHint, in bytes: an error may quote what a caller sent, and is never made of it.
const maxErrorText = 600

func failure(e *Error) Result {
	short := *e
	short.Message, short.FixHint = shortened(e.Message, maxErrorText), shortened(e.FixHint, maxErrorText)
	data, err := json.Marshal(short)
	if err != nil {
		data = []byte(`{}`)
	}
	return Result{IsError: true, Structured: data, Text: string(data), Outcome: e.Code}
}

// errorOf gives every error a code and a next step.
func errorOf(err error) *Error {
	var own *Error
	if errors.As(err, &own) {
		return own
	}
	var p *backend.Problem
	if errors.As(err, &p) {
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
		return &Error{Code: CodeCancelled, Message: "the call was cancelled", Retryable: true, FixHint: "repeat the call if its answer is still wanted"}
	}
	return &Error{Code: CodeInternal, Message: err.Error(), FixHint: "look at the daemon's log (servicectl daemon logs)"}
}

// hints are the next steps for problems that come without one.
var hints = map[string]string{
	backend.CodeUnknownDeviceCode:  "call createSimulatorSession again for a fresh code and show the person the new code and URL",
	backend.CodeDeviceCodeExpired:  "call createSimulatorSession again for a fresh code and show the person the new code and URL",
	backend.CodeDeviceCodeDenied:   "the person declined; ask whether they want to link an account, then call createSimulatorSession again and have them accept",
	backend.CodeUnreachable:        "check the network and that the backend is up (servicectl status), then repeat the call",
	backend.CodeInvalidResponse:    "the backend and this version do not fit together; update the service",
	backend.CodeRateLimited:        "wait a little, then repeat the call",
	backend.CodeAdapterUnavailable: "run servicectl status to see what is wrong with the adapter, then repeat the call",
}

func hintOf(code string, retryable bool) string {
	if hint, ok := hints[code]; ok {
		return hint
	}
	if retryable {
		return "repeat the call in a moment"
	}
	return "change the call as the message says; repeating it unchanged does not help"
}

// stamp writes a time as the spec does: ISO 8601 in UTC.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// stampOrNull is nil, which is written as null, for the zero time.
func stampOrNull(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	s := stamp(t)
	return &s
}

// stampOf is nil for nil.
func stampOf(t *time.Time) *string {
	if t == nil {
		return nil
	}
	return stampOrNull(*t)
}

// problemOf is the backend's refusal in an error, or nil.
func problemOf(err error) *backend.Problem {
	var p *backend.Problem
	if errors.As(err, &p) {
		return p
	}
	return nil
}
