package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/service-dev/service/internal/problem"
)

// invalid returns the error for invalid arguments.
func invalid(message, hint string) error {
	return &problem.Error{Code: problem.CodeInvalidRequest, Message: message, FixHint: hint}
}

// missing returns the error for a missing argument.
func missing(argument, hint string) error {
	return invalid(fmt.Sprintf("argument %q is missing", argument), hint)
}

// outcome is implemented by answers that are neither plain successes nor errors.
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
		return failure(&problem.Error{Code: problem.CodeInternal, Message: "encode the answer: " + err.Error(),
			FixHint: "Report this with the daemon's log (servicectl daemon logs)."})
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

// maxErrorText is the maximum length of message and fixHint in bytes. Both may quote the caller's text.
const maxErrorText = 600

func failure(e *problem.Error) Result {
	short := *e
	short.Message, short.FixHint = cut(e.Message, maxErrorText), cut(e.FixHint, maxErrorText)
	data, err := json.Marshal(short)
	if err != nil {
		data = []byte(`{}`)
	}
	return Result{IsError: true, Structured: data, Text: string(data), Outcome: e.Code}
}

// errorOf returns the problem.Error that describes err, with a code and a next step.
func errorOf(err error) *problem.Error {
	if p := problem.From(err); p != nil {
		e := *p
		e.FixHint = cmp.Or(p.FixHint, hintOf(p))
		return &e
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return &problem.Error{Code: problem.CodeCancelled, Message: "the call was cancelled", Retryable: true,
			FixHint: "Repeat the call if you still need its answer."}
	}
	return &problem.Error{Code: problem.CodeInternal, Message: err.Error(),
		FixHint: "Check the daemon's log (servicectl daemon logs)."}
}

// hintOf returns the next step after a problem without a fix hint.
func hintOf(p *problem.Error) string {
	general := "Change the call as described in the message; repeating it unchanged does not help."
	if p.Retryable {
		general = "Repeat the call in a moment."
	}
	return cmp.Or(problem.Of(p.Code).FixHint, general)
}

// stamp formats a time as RFC 3339 in UTC.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// stampOrNull formats a time, or returns nil for the zero time, which is null in JSON.
func stampOrNull(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	return new(stamp(t))
}

// stampOf formats a time, or returns nil for nil.
func stampOf(t *time.Time) *string {
	if t == nil {
		return nil
	}
	return stampOrNull(*t)
}
