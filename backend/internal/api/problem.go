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
	"github.com/service-dev/service/proto/backendapi"
)

// Refusal is an error of this API: a code, what happened, and what to do next.
type Refusal struct {
	Code, Message, FixHint string
	RetryAfter             time.Duration
	current                int64               // stored version, for a version conflict
	denied                 *grants.DeniedError // the missing grant
}

// Error returns the message.
func (e *Refusal) Error() string { return e.Message }

func refusal(code, message, fixHint string) *Refusal {
	return &Refusal{Code: code, Message: message, FixHint: fixHint}
}

func invalidRequest(message, fixHint string) *Refusal {
	return refusal(backendapi.CodeInvalidRequest, message, fixHint)
}

// rateLimited returns a refusal with a hint that contains the wait in seconds.
func rateLimited(wait time.Duration, message, fixHint string) *Refusal {
	return &Refusal{Code: backendapi.CodeRateLimited, Message: message, FixHint: fmt.Sprintf(fixHint, seconds(wait)),
		RetryAfter: wait}
}

func tooMany(wait time.Duration) *Refusal {
	return rateLimited(wait, "too many requests from this address", "wait %d s and try again")
}

func seconds(d time.Duration) int { return httpjson.Seconds(d) }

// codeInfos maps each code to its status and title.
var codeInfos = func() map[string]backendapi.CodeInfo {
	all := map[string]backendapi.CodeInfo{}
	for _, info := range backendapi.Codes() {
		all[info.Code] = info
	}
	return all
}()

const (
	startAgain   = "start again to get a new code"
	correctField = "correct the field and try again"
)

var (
	noProject = refusal(backendapi.CodeNotFound, "the account has no such project",
		"list the projects for their app ids; a project is created with its first session or key")

	// refusals maps the features' errors that have no details to refusals.
	refusals = []struct {
		err     error
		refusal *Refusal
	}{
		{link.ErrUnknown, refusal(backendapi.CodeUnknownDeviceCode,
			"the device code is unknown or was already used", startAgain)},
		{link.ErrExpired, refusal(backendapi.CodeDeviceCodeExpired, "the device code has expired", startAgain)},
		{link.ErrDenied, refusal(backendapi.CodeDeviceCodeDenied,
			"the person declined the request", "ask the person to try again and accept")},
		{projects.ErrNotFound, noProject},
		{assistant.ErrNoProject, noProject},
		{connpage.ErrNotFound, noProject},
		{projects.ErrTooManyProjects, refusal(backendapi.CodeConflict, "the account has reached its project limit",
			"use an existing project, or ask the person to delete one in the dashboard")},
		{projects.ErrTooManyKeys, refusal(backendapi.CodeTooManyKeys, "the project has reached its key limit",
			"use an existing key, or ask the account's owner to revoke an unused one in the dashboard")},
		{credentials.ErrNotConfigured, refusal(backendapi.CodeNotConfigured,
			"this backend stores no credentials: its operator has set no encryption key",
			"ask the backend's operator to set credentials_key_file")},
		{credentials.ErrUnknownProvider, refusal(backendapi.CodeNotFound, "this backend knows no such provider",
			"list the project's credentials for the providers' ids")},
		{sessions.ErrNotFound, refusal(backendapi.CodeNotFound, "there is no such session",
			"list the sessions, or create one")},
		{sessions.ErrClosed, refusal(backendapi.CodeConflict, "the session is closed", "create the session again")},
		{sessions.ErrNoGlasses, refusal(backendapi.CodeNotConnected, "no simulator page of the session is open",
			"open the session's page (sessionUrl) in a browser and try again")},
		{sessions.ErrNoAnswer, refusal(backendapi.CodeTimeout, "the simulator page did not answer in time",
			"bring the page to the front or reload it, and try again")},
		{sessions.ErrUnavailable, &Refusal{Code: backendapi.CodeUnavailable,
			Message: "the database is busy with another change of the same data", FixHint: "wait a second and try again",
			RetryAfter: time.Second}},
		{sessions.ErrTooManyWaiters, &Refusal{Code: backendapi.CodeRateLimited,
			Message: "too many requests are already waiting for events", FixHint: "ask again without waitMs, or later",
			RetryAfter: time.Second}},
	}
)

// refusalOf converts a feature's error to a refusal. It returns nil for internal errors, whose text is only logged.
func refusalOf(err error) *Refusal {
	var own *Refusal
	if errors.As(err, &own) {
		return own
	}
	for _, r := range refusals {
		if errors.Is(err, r.err) {
			return r.refusal
		}
	}
	if errors.Is(err, analytics.ErrInvalid) {
		return invalidRequest(err.Error(), "request a past time of at most 90 days by day or 7 days by hour")
	}
	var paced *sessions.PacedError
	if errors.As(err, &paced) {
		return rateLimited(paced.Wait, "the account created too many sessions within a minute",
			"wait %d s and try again, or continue with an open session")
	}
	if e := conflictOf(err); e != nil {
		return e
	}
	return invalidOf(err)
}

func conflictOf(err error) *Refusal {
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

func invalidOf(err error) *Refusal {
	var ofProject *projects.InvalidError
	var ofAssistant *assistant.InvalidError
	var ofPage *connpage.InvalidError
	var ofSession *sessions.InvalidError
	switch {
	case errors.As(err, &ofProject):
		return invalidRequest(ofProject.Message, correctField)
	case errors.As(err, &ofAssistant):
		return invalidRequest(ofAssistant.Message, "read the config for the valid ids in choices, and try again")
	case errors.As(err, &ofPage):
		return invalidRequest(ofPage.Message, correctField)
	case errors.As(err, &ofSession):
		return invalidRequest(ofSession.Message, correctField)
	}
	return nil
}

func versionConflict(what string, current int64) *Refusal {
	e := refusal(backendapi.CodeVersionConflict, fmt.Sprintf("%s is now at version %d", what, current),
		"read it again, check that the change is still wanted, and send it with that version")
	e.current = current
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
func (a *API) permissionDenied(d *grants.DeniedError) *Refusal {
	setting := settings[string(d.Capability)]
	if d.Field != "" {
		setting += " > " + settings[d.Field]
	}
	verb := "read"
	if d.Needed == grants.ReadWrite {
		verb = "change"
	}
	e := refusal(backendapi.CodePermissionDenied,
		fmt.Sprintf("the account does not let agents %s %s of this project: it grants %s",
			verb, setting, settings[string(d.Granted)]),
		fmt.Sprintf("ask the account's owner to set %s to %s at %s/account/mcp-access; this takes effect with the next call",
			setting, settings[string(d.Needed)], a.SiteURL))
	e.denied = d
	return e
}

// body returns the response body in the form required for the refusal's code.
func (e *Refusal) body() any {
	p := problem(e)
	switch {
	case e.denied != nil:
		return backendapi.PermissionDenied{Problem: p, Project: e.denied.Project, Capability: string(e.denied.Capability),
			Field: e.denied.Field, Needed: string(e.denied.Needed), Granted: string(e.denied.Granted)}
	case e.Code == backendapi.CodeVersionConflict:
		return backendapi.VersionConflict{Problem: p, CurrentVersion: e.current}
	}
	return p
}

func problem(e *Refusal) backendapi.Problem {
	info, ok := codeInfos[e.Code]
	if !ok {
		info = codeInfos[backendapi.CodeInternal]
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
		e = refusal(backendapi.CodeInternal, "the backend failed",
			"try again; if it happens again, tell the operator when it happened")
	}
	if e.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(seconds(e.RetryAfter)))
	}
	w.Header().Set("Content-Type", "application/problem+json")
	a.answer(w, problem(e).Status, e.body())
}
