package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

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

func (a *API) createSession(c *call) (any, error) {
	var body backendapi.SessionRequest
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	owner := sessions.Owner{AccountID: c.who.AccountID, LinkID: c.who.LinkID}
	s, created, err := a.Sessions.Mint(c.Context(), owner, sessions.Request{
		Project: body.Project, Platform: body.Platform, DeviceModel: body.DeviceModel, Fresh: body.Fresh,
	})
	if err != nil {
		return nil, err
	}
	if created {
		c.status = http.StatusCreated
	}
	return backendapi.CreatedSession{Session: a.sessionOf(s), Created: created}, nil
}

func (a *API) listSessions(c *call) (any, error) {
	list, err := a.Sessions.List(c.Context(), c.who.AccountID)
	if err != nil {
		return nil, err
	}
	out := backendapi.SessionList{Sessions: make([]backendapi.Session, 0, len(list))}
	for _, s := range list {
		out.Sessions = append(out.Sessions, a.sessionOf(s))
	}
	return out, nil
}

func (a *API) getSession(c *call) (any, error) {
	s, err := a.Sessions.Get(c.Context(), c.who.AccountID, c.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return a.sessionOf(s), nil
}

func (a *API) closeSession(c *call) (any, error) {
	s, err := a.Sessions.Close(c.Context(), c.who.AccountID, c.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return a.sessionOf(s), nil
}

func (a *API) mintSecret(c *call) (any, error) {
	sst, err := a.Sessions.MintSecret(c.Context(), c.who.AccountID, c.PathValue("id"))
	if err != nil {
		return nil, err
	}
	c.status = http.StatusCreated
	return backendapi.SessionSecret{AppSecret: sst}, nil
}

// maxEventPage bounds the rows of one answer in bytes: clients refuse one that is longer than 1 MB. A row alone, of a
// frame that the encoder had to escape all through, stays below that.
const maxEventPage = 512 << 10

func (a *API) listEvents(c *call) (any, error) {
	var n [3]int64 // since, limit, waitMs
	for i, name := range []string{"since", "limit", "waitMs"} {
		var err error
		if n[i], err = queryInt(c.Request, name); err != nil {
			return nil, err
		}
	}
	page, err := a.Sessions.Events(c.Context(), c.who.AccountID, c.PathValue("id"), n[0], int(min(n[1], sessions.MaxEvents)),
		time.Duration(min(n[2], backendapi.MaxWaitMs))*time.Millisecond)
	if err != nil {
		return nil, err
	}
	out := backendapi.EventPage{Events: make([]json.RawMessage, 0, len(page.Events)), Next: page.Next, More: page.More, Truncated: page.Truncated}
	size := 0
	for _, e := range page.Events {
		row, err := json.Marshal(e)
		if err != nil {
			return nil, err
		}
		if size += len(row) + 1; size > maxEventPage && len(out.Events) > 0 {
			out.More = true
			break
		}
		out.Events, out.Next = append(out.Events, row), e.Seq
	}
	return out, nil
}

// maxControl bounds the body of a control request: media in base64, and the rest.
const maxControl = backendapi.MaxControlMedia/3*4 + maxBody

func (a *API) control(c *call) (any, error) {
	var body backendapi.Control
	if err := decodeWithin(c.w, c.Request, maxControl, &body); err != nil {
		return nil, err
	}
	if len(body.Media) > backendapi.MaxControlMedia {
		return nil, refusal(backendapi.CodeTooLarge, "the media is over 1 MB", "send a smaller picture or a shorter sound")
	}
	if len(body.Payload) == 0 {
		body.Payload = json.RawMessage("{}")
	}
	result, err := a.Sessions.Control(c.Context(), c.who.AccountID, c.PathValue("id"), body.Type, body.Payload, body.Media)
	if err != nil {
		return nil, err
	}
	return backendapi.Controlled{Result: result}, nil
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
	return backendapi.Session{
		SessionID: s.ID, Project: s.Project, Platform: s.Platform, DeviceModel: s.DeviceModel, State: s.State(a.Now()),
		SessionURL:  a.SiteURL + "/s/" + s.ID,
		AppEndpoint: AppEndpoint(a.BaseURL, s.ID),
		CreatedAt:   timestamp(s.CreatedAt), LastActiveAt: timestamp(s.LastActive), ExpiresAt: timestamp(s.ExpiresAt),
		Apps: len(live.Apps), Pages: live.Pages, LastSeq: s.LastSeq, ClosedAt: timeOrNull(s.ClosedAt),
	}
}

// AppEndpoint is the WebSocket address that apps of a session connect to.
func AppEndpoint(baseURL, sessionID string) string {
	return "ws" + strings.TrimPrefix(strings.TrimSuffix(baseURL, "/"), "http") + backendapi.PathSessions + "/" + sessionID + "/app"
}

// sessionRefusal turns the sessions' errors into refusals; nil for others.
func sessionRefusal(err error) *Refusal {
	var invalid *sessions.InvalidError
	var paced *sessions.PacedError
	switch {
	case errors.As(err, &paced):
		return &Refusal{Code: backendapi.CodeRateLimited, Message: "the account made too many sessions within a minute",
			FixHint: fmt.Sprintf("wait %d s and try again, or go on with a session that is open", seconds(paced.Wait)), RetryAfter: paced.Wait}
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
