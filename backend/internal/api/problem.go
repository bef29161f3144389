package api

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/service-dev/service/backend/internal/grants"
	"github.com/service-dev/service/backend/internal/link"
	"github.com/service-dev/service/proto/backendapi"
)

// Refusal is an error of this API's own: a code, what happened, what to do next.
type Refusal struct {
	Code, Message, FixHint string
	RetryAfter             time.Duration
	// current is the version that stands, of a version conflict.
	current int64
	// denied is what a grant lacks.
	denied *grants.DeniedError
}

// Error says what happened.
func (e *Refusal) Error() string { return e.Message }

func refusal(code, message, fixHint string) *Refusal {
	return &Refusal{Code: code, Message: message, FixHint: fixHint}
}

func tooMany(wait time.Duration) *Refusal {
	return &Refusal{Code: backendapi.CodeRateLimited, Message: "too many requests from this address",
		FixHint: fmt.Sprintf("wait %d s and try again", seconds(wait)), RetryAfter: wait}
}

func seconds(d time.Duration) int { return max(1, int(math.Ceil(d.Seconds()))) }

// statuses finds the status and title of a code.
var statuses = func() map[string]backendapi.CodeInfo {
	all := map[string]backendapi.CodeInfo{}
	for _, info := range backendapi.Codes() {
		all[info.Code] = info
	}
	return all
}()

// known turns the features' errors into refusals; what is not listed is an internal error, whose text stays in the log.
func known(err error) *Refusal {
	var own *Refusal
	switch {
	case errors.As(err, &own):
		return own
	case errors.Is(err, link.ErrUnknown):
		return refusal(backendapi.CodeUnknownDeviceCode, "the device code was never issued or is used up", "start again for a fresh code")
	case errors.Is(err, link.ErrExpired):
		return refusal(backendapi.CodeDeviceCodeExpired, "the device code's window is over", "start again for a fresh code")
	case errors.Is(err, link.ErrDenied):
		return refusal(backendapi.CodeDeviceCodeDenied, "the person declined", "ask the person to try again and accept")
	}
	for _, of := range []func(error) *Refusal{projectRefusal, assistantRefusal, credentialRefusal, analyticsRefusal, pageRefusal, sessionRefusal} {
		if e := of(err); e != nil {
			return e
		}
	}
	return nil
}

func versionConflict(what string, current int64) *Refusal {
	e := refusal(backendapi.CodeVersionConflict, fmt.Sprintf("%s is at version %d by now", what, current),
		"read it again, see whether the change is still wanted, and send it with that version")
	e.current = current
	return e
}

// settings names capabilities and fields as the page of the grants does.
var settings = map[string]string{
	string(grants.Assistant): "Assistant config", string(grants.Credentials): "Credentials", string(grants.Analytics): "Analytics",
	grants.RealtimeModel: "realtime model", grants.Voice: "voice", grants.MemoryModel: "memory model",
	grants.SessionMemory: "session memory", grants.Sounds: "sounds",
	string(grants.Off): "Off", string(grants.Read): "Read", string(grants.ReadWrite): "Read + Write",
}

// permissionDenied says what the account grants, and who can change it where.
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
		fmt.Sprintf("the account does not let agents %s %s of this project: it grants %s", verb, setting, settings[string(d.Granted)]),
		fmt.Sprintf("ask the account's owner to set %s to %s at %s/account/mcp-access; the next call obeys", setting, settings[string(d.Needed)], a.SiteURL))
	e.denied = d
	return e
}

// body is a refusal in the shape of its code.
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
	row, ok := statuses[e.Code]
	if !ok {
		row = statuses[backendapi.CodeInternal]
	}
	return backendapi.Problem{Type: "about:blank", Title: row.Title, Status: row.Status, Code: e.Code,
		Detail: e.Message, Retryable: row.Retryable, FixHint: e.FixHint}
}

// fail answers a refusal as application/problem+json.
func (a *API) fail(w http.ResponseWriter, r *http.Request, err error) {
	e := known(err)
	var denied *grants.DeniedError
	if errors.As(err, &denied) {
		e = a.permissionDenied(denied)
	}
	if e == nil {
		if r.Context().Err() != nil {
			return // the caller is gone
		}
		a.Log.ErrorContext(r.Context(), "serving a request", "method", r.Method, "path", r.URL.Path, "err", err)
		e = refusal(backendapi.CodeInternal, "something went wrong here", "try again; if it goes on, tell the operator the time of this answer")
	}
	if e.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(seconds(e.RetryAfter)))
	}
	w.Header().Set("Content-Type", "application/problem+json")
	a.answer(w, problem(e).Status, e.body())
}
