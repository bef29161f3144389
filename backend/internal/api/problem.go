package api

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/service-dev/service/backend/internal/analytics"
	"github.com/service-dev/service/backend/internal/assistant"
	"github.com/service-dev/service/backend/internal/connpage"
	"github.com/service-dev/service/backend/internal/credentials"
	"github.com/service-dev/service/backend/internal/grants"
	"github.com/service-dev/service/backend/internal/httpjson"
	"github.com/service-dev/service/backend/internal/link"
	"github.com/service-dev/service/backend/internal/projects"
	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/proto/backendapi"
)

func invalidRequest(message, fixHint string) *problem.Error {
	return problem.New(problem.CodeInvalidRequest, message, fixHint)
}

// rateLimited returns a refusal with a hint that contains the wait in seconds.
func rateLimited(wait time.Duration, message, fixHint string) *problem.Error {
	return &problem.Error{Code: problem.CodeRateLimited, Message: message, FixHint: fmt.Sprintf(fixHint, seconds(wait)),
		RetryAfter: wait}
}

func tooMany(wait time.Duration) *problem.Error {
	return rateLimited(wait, "too many requests from this address", "Wait %d s and try again.")
}

func seconds(d time.Duration) int { return httpjson.Seconds(d) }

const (
	startAgain   = "Start again to get a new code."
	correctField = "Correct the field and try again."
)

var (
	noProject = problem.New(problem.CodeNotFound, "the account has no such project",
		"List the projects to get their app ids; a project is created with its first session or key.")

	// refusals maps errors of the features that contain no details to refusals.
	refusals = []struct {
		err     error
		refusal *problem.Error
	}{
		{link.ErrUnknown, problem.New(problem.CodeUnknownDeviceCode,
			"the device code is unknown or was already used", startAgain)},
		{link.ErrExpired, problem.New(problem.CodeDeviceCodeExpired, "the device code has expired", startAgain)},
		{link.ErrDenied, problem.New(problem.CodeDeviceCodeDenied,
			"the user declined the request", "Ask the user to try again and accept.")},
		{projects.ErrNotFound, noProject},
		{assistant.ErrNoProject, noProject},
		{connpage.ErrNotFound, noProject},
		{projects.ErrTooManyProjects, problem.New(problem.CodeConflict, "the account has reached its project limit",
			"Use an existing project, or ask the user to delete one in the dashboard.")},
		{projects.ErrTooManyKeys, problem.New(problem.CodeTooManyKeys, "the project has reached its key limit",
			"Use an existing key, or ask the account's owner to revoke an unused one in the dashboard.")},
		{credentials.ErrNotConfigured, problem.New(problem.CodeNotConfigured,
			"this backend stores no credentials: its operator has set no encryption key",
			"Ask the backend's operator to set credentials_key_file.")},
		{credentials.ErrUnknownProvider, problem.New(problem.CodeNotFound, "this backend knows no such provider",
			"List the project's credentials to get the providers' ids.")},
		{sessions.ErrNotFound, problem.New(problem.CodeNotFound, "there is no such session",
			"List the sessions, or create one.")},
		{sessions.ErrClosed, problem.New(problem.CodeConflict, "the session is closed", "Create the session again.")},
		{sessions.ErrNoGlasses, problem.New(problem.CodeNotConnected, "no simulator page of the session is open",
			"Open the session's page (sessionUrl) in a browser and try again.")},
		{sessions.ErrNoAnswer, problem.New(problem.CodeTimeout, "the simulator page did not answer in time",
			"Bring the page to the front or reload it, and try again.")},
		{sessions.ErrUnavailable, &problem.Error{Code: problem.CodeUnavailable,
			Message: "the database is busy with another change of the same data", FixHint: "Wait a second and try again.",
			RetryAfter: time.Second}},
		{sessions.ErrTooManyWaiters, &problem.Error{Code: problem.CodeRateLimited,
			Message:    "too many requests are already waiting for events",
			FixHint:    "Repeat the request without waitMs, or try again later.",
			RetryAfter: time.Second}},
	}
)

// refusalOf converts a feature's error to a refusal. It returns nil for internal errors, whose text is only logged. A
// problem with a cause is an internal error, because only failures of this backend have a cause.
func refusalOf(err error) *problem.Error {
	if own := problem.From(err); own != nil {
		if own.Err != nil {
			return nil
		}
		return own
	}
	for _, r := range refusals {
		if errors.Is(err, r.err) {
			return r.refusal
		}
	}
	if errors.Is(err, analytics.ErrInvalid) {
		return invalidRequest(err.Error(), "Request a past time of at most 90 days by day or 7 days by hour.")
	}
	var paced *sessions.PacedError
	if errors.As(err, &paced) {
		return rateLimited(paced.Wait, "the account created too many sessions within a minute",
			"Wait %d s and try again, or continue with an open session.")
	}
	if e := conflictOf(err); e != nil {
		return e
	}
	return invalidOf(err)
}

func conflictOf(err error) *problem.Error {
	var ofAssistant *assistant.ConflictError
	var ofPage *connpage.ConflictError
	switch {
	case errors.As(err, &ofAssistant):
		return versionConflict("the assistant's config", ofAssistant.Current)
	case errors.As(err, &ofPage):
		return versionConflict("the connection page", ofPage.Current)
	}
	return nil
}

func invalidOf(err error) *problem.Error {
	var ofProject *projects.InvalidError
	var ofAssistant *assistant.InvalidError
	var ofPage *connpage.InvalidError
	var ofSession *sessions.InvalidError
	switch {
	case errors.As(err, &ofProject):
		return invalidRequest(ofProject.Message, correctField)
	case errors.As(err, &ofAssistant):
		return invalidRequest(ofAssistant.Message, "Read the config, choose an id from choices, and try again.")
	case errors.As(err, &ofPage):
		return invalidRequest(ofPage.Message, correctField)
	case errors.As(err, &ofSession):
		return invalidRequest(ofSession.Message, correctField)
	}
	return nil
}

func versionConflict(what string, current int64) *problem.Error {
	e := problem.New(problem.CodeVersionConflict, fmt.Sprintf("%s is now at version %d", what, current),
		"Read it again, check that the change is still wanted, and send it with that version.")
	e.CurrentVersion = &current
	return e
}

// settings maps capabilities, fields and levels to their names in a refusal.
var settings = map[string]string{
	string(grants.Assistant): "Assistant config", string(grants.Credentials): "Credentials",
	string(grants.Analytics): "Analytics",
	grants.RealtimeModel:     "realtime model", grants.Voice: "voice", grants.MemoryModel: "memory model",
	grants.TextModel: "text model", grants.GatewayUsage: "gateway usage",
	grants.SessionMemory: "session memory", grants.Sounds: "sounds",
	string(grants.Off): "Off", string(grants.Read): "Read", string(grants.ReadWrite): "Read + Write",
}

// permissionDenied returns a refusal that contains the account's current grant and where its owner can change it.
func (a *API) permissionDenied(d *grants.DeniedError) *problem.Error {
	setting := settings[string(d.Capability)]
	if d.Field != "" {
		setting += " > " + settings[d.Field]
	}
	verb := "read"
	if d.Needed == grants.ReadWrite {
		verb = "change"
	}
	e := problem.New(problem.CodePermissionDenied,
		fmt.Sprintf("the account does not let agents %s %s of this project: it grants %s",
			verb, setting, settings[string(d.Granted)]),
		fmt.Sprintf("Ask the account's owner to set %s to %s at %s/account/mcp-access; this takes effect with the next call.",
			setting, settings[string(d.Needed)], a.SiteURL))
	e.Capability, e.Field, e.Needed, e.Granted = string(d.Capability), d.Field, string(d.Needed), string(d.Granted)
	return e
}

// bodyOf returns the response body for e.
func bodyOf(e *problem.Error) backendapi.Problem {
	info := problem.Of(e.Code)
	if info.Title == "" {
		info = problem.Of(problem.CodeInternal)
	}
	return backendapi.Problem{Type: "about:blank", Title: info.Title, Status: info.Status, Code: e.Code,
		Detail: e.Message, Retryable: info.Retryable, FixHint: e.FixHint}
}

// fail writes the refusal or error as application/problem+json.
func (a *API) fail(w http.ResponseWriter, r *http.Request, err error) {
	e := refusalOf(err)
	var denied *grants.DeniedError
	if errors.As(err, &denied) {
		e = a.permissionDenied(denied)
	}
	if e == nil {
		if r.Context().Err() != nil {
			return // the client has disconnected
		}
		a.Log.ErrorContext(r.Context(), "failed to serve request", "method", r.Method, "path", r.URL.Path, "err", err)
		e = problem.New(problem.CodeInternal, "the backend failed",
			"Try again; if it happens again, tell the operator when it happened.")
	}
	if e.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(seconds(e.RetryAfter)))
	}
	w.Header().Set("Content-Type", "application/problem+json")
	p := bodyOf(e)
	switch {
	case denied != nil:
		a.answer(w, p.Status, backendapi.PermissionDenied{Problem: p, Project: denied.Project, Capability: e.Capability,
			Field: e.Field, Needed: e.Needed, Granted: e.Granted})
	case e.CurrentVersion != nil:
		a.answer(w, p.Status, backendapi.VersionConflict{Problem: p, CurrentVersion: *e.CurrentVersion})
	default:
		a.answer(w, p.Status, p)
	}
}
