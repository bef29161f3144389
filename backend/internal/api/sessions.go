package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/service-dev/service/backend/internal/link"
	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/proto/backendapi"
)

// Sessions is what the routes need of the sessions.
type Sessions interface {
	Mint(ctx context.Context, o sessions.Owner, r sessions.Request) (s sessions.Session, created bool, err error)
	Get(ctx context.Context, accountID, id string) (sessions.Session, error)
	List(ctx context.Context, accountID string) ([]sessions.Session, error)
	Close(ctx context.Context, accountID, id string) (sessions.Session, error)
	SessionDetails
}

// SessionDetails is what belongs to one session.
type SessionDetails interface {
	MintSecret(ctx context.Context, accountID, id string) (string, error)
	Events(ctx context.Context, accountID, id string, since int64, limit int, wait time.Duration) (sessions.Page, error)
	Control(ctx context.Context, accountID, id, typ string, payload json.RawMessage, media []byte) (json.RawMessage, error)
	Attached(id string) sessions.Live
}

func (a *API) mountSessions(mux *http.ServeMux) {
	one := backendapi.PathSessions + "/{id}"
	mux.HandleFunc("POST "+backendapi.PathSessions, a.account(a.createSession))
	mux.HandleFunc("GET "+backendapi.PathSessions, a.account(a.listSessions))
	mux.HandleFunc("GET "+one, a.account(a.getSession))
	mux.HandleFunc("DELETE "+one, a.account(a.closeSession))
	mux.HandleFunc("POST "+one+"/secrets", a.account(a.mintSecret))
	mux.HandleFunc("GET "+one+"/events", a.account(a.listEvents))
	mux.HandleFunc("POST "+one+"/control", a.account(a.control))
}

func (a *API) createSession(w http.ResponseWriter, r *http.Request, who link.Principal) {
	var body backendapi.SessionRequest
	if err := decode(w, r, &body); err != nil {
		a.fail(w, r, err)
		return
	}
	owner := sessions.Owner{AccountID: who.AccountID, LinkID: who.LinkID}
	s, created, err := a.Sessions.Mint(r.Context(), owner, sessions.Request{
		Project: body.Project, Platform: body.Platform, DeviceModel: body.DeviceModel, Fresh: body.Fresh,
	})
	if err != nil {
		a.fail(w, r, err)
		return
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
	}
	a.answer(w, status, backendapi.CreatedSession{Session: a.sessionOf(s), Created: created})
}

func (a *API) listSessions(w http.ResponseWriter, r *http.Request, who link.Principal) {
	list, err := a.Sessions.List(r.Context(), who.AccountID)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	out := backendapi.SessionList{Sessions: make([]backendapi.Session, 0, len(list))}
	for _, s := range list {
		out.Sessions = append(out.Sessions, a.sessionOf(s))
	}
	a.answer(w, http.StatusOK, out)
}

func (a *API) getSession(w http.ResponseWriter, r *http.Request, who link.Principal) {
	s, err := a.Sessions.Get(r.Context(), who.AccountID, r.PathValue("id"))
	if err != nil {
		a.fail(w, r, err)
		return
	}
	a.answer(w, http.StatusOK, a.sessionOf(s))
}

func (a *API) closeSession(w http.ResponseWriter, r *http.Request, who link.Principal) {
	s, err := a.Sessions.Close(r.Context(), who.AccountID, r.PathValue("id"))
	if err != nil {
		a.fail(w, r, err)
		return
	}
	a.answer(w, http.StatusOK, a.sessionOf(s))
}

func (a *API) mintSecret(w http.ResponseWriter, r *http.Request, who link.Principal) {
	sst, err := a.Sessions.MintSecret(r.Context(), who.AccountID, r.PathValue("id"))
	if err != nil {
		a.fail(w, r, err)
		return
	}
	a.answer(w, http.StatusCreated, backendapi.SessionSecret{AppSecret: sst})
}

// maxEventPage bounds the rows of one answer in bytes: clients refuse one that is longer than 1 MB. A row alone, of a
// frame that the encoder had to escape all through, stays below that.
const maxEventPage = 512 << 10

func (a *API) listEvents(w http.ResponseWriter, r *http.Request, who link.Principal) {
	since, err := queryInt(r, "since")
	if err != nil {
		a.fail(w, r, err)
		return
	}
	limit, err := queryInt(r, "limit")
	if err != nil {
		a.fail(w, r, err)
		return
	}
	wait, err := queryInt(r, "waitMs")
	if err != nil {
		a.fail(w, r, err)
		return
	}
	page, err := a.Sessions.Events(r.Context(), who.AccountID, r.PathValue("id"), since, int(min(limit, sessions.MaxEvents)),
		time.Duration(min(wait, backendapi.MaxWaitMs))*time.Millisecond)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	out := backendapi.EventPage{Events: make([]json.RawMessage, 0, len(page.Events)), Next: page.Next, More: page.More}
	size := 0
	for _, e := range page.Events {
		row, err := json.Marshal(e)
		if err != nil {
			a.fail(w, r, err)
			return
		}
		if size += len(row) + 1; size > maxEventPage && len(out.Events) > 0 {
			out.More = true
			break
		}
		out.Events, out.Next = append(out.Events, row), e.Seq
	}
	a.answer(w, http.StatusOK, out)
}

// maxControl bounds the body of a control request: media in base64, and the rest.
const maxControl = backendapi.MaxControlMedia/3*4 + maxBody

func (a *API) control(w http.ResponseWriter, r *http.Request, who link.Principal) {
	var body backendapi.Control
	if err := decodeWithin(w, r, maxControl, &body); err != nil {
		a.fail(w, r, err)
		return
	}
	if len(body.Media) > backendapi.MaxControlMedia {
		a.fail(w, r, refusal(backendapi.CodeTooLarge, "the media is over 1 MB", "send a smaller picture or a shorter sound"))
		return
	}
	if len(body.Payload) == 0 {
		body.Payload = json.RawMessage("{}")
	}
	result, err := a.Sessions.Control(r.Context(), who.AccountID, r.PathValue("id"), body.Type, body.Payload, body.Media)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	a.answer(w, http.StatusOK, backendapi.Controlled{Result: result})
}

// queryInt reads a non-negative integer of the query; absent is 0.
func queryInt(r *http.Request, name string) (int64, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, refusal(backendapi.CodeInvalidRequest, name+" is not a non-negative integer", "leave it out or send one")
	}
	return n, nil
}

func (a *API) sessionOf(s sessions.Session) backendapi.Session {
	live := a.Sessions.Attached(s.ID)
	out := backendapi.Session{
		SessionID: s.ID, Project: s.Project, Platform: s.Platform, DeviceModel: s.DeviceModel, State: s.State(a.Now()),
		SessionURL:  strings.TrimSuffix(a.SiteURL, "/") + "/s/" + s.ID,
		AppEndpoint: AppEndpoint(a.BaseURL, s.ID),
		CreatedAt:   timestamp(s.CreatedAt), LastActiveAt: timestamp(s.LastActive), ExpiresAt: timestamp(s.ExpiresAt),
		Apps: len(live.Apps), Pages: live.Pages, LastSeq: s.LastSeq,
	}
	if !s.ClosedAt.IsZero() {
		at := timestamp(s.ClosedAt)
		out.ClosedAt = &at
	}
	return out
}

// AppEndpoint is the WebSocket address that apps of a session connect to.
func AppEndpoint(baseURL, sessionID string) string {
	return "ws" + strings.TrimPrefix(strings.TrimSuffix(baseURL, "/"), "http") + backendapi.PathSessions + "/" + sessionID + "/app"
}

// sessionRefusal turns the sessions' errors into refusals; nil for others.
func sessionRefusal(err error) *Refusal {
	var invalid *sessions.InvalidError
	switch {
	case errors.As(err, &invalid):
		return refusal(backendapi.CodeInvalidRequest, invalid.Message, "correct the field and try again")
	case errors.Is(err, sessions.ErrNotFound):
		return refusal(backendapi.CodeNotFound, "there is no such session", "list the sessions, or create one")
	case errors.Is(err, sessions.ErrClosed):
		return refusal(backendapi.CodeConflict, "the session is closed", "create the session again")
	case errors.Is(err, sessions.ErrNoGlasses):
		return refusal(backendapi.CodeNotConnected, "no simulator page of the session is open", "open the session's page (sessionUrl) in a browser and try again")
	case errors.Is(err, sessions.ErrNoAnswer):
		return refusal(backendapi.CodeTimeout, "the simulator page did not answer in time", "bring the page to the front or reload it, and try again")
	case errors.Is(err, sessions.ErrTooManyWaiters):
		return &Refusal{Code: backendapi.CodeRateLimited, Message: "too many wait for events already", FixHint: "ask again without waitMs, or later", RetryAfter: time.Second}
	}
	return nil
}
