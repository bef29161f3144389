package api

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/glasses/assistantscript"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/proto/backendapi"
)

func (a *API) createSession(c *call, body backendapi.SessionRequest) (any, error) {
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
	return backendapi.SessionList{Sessions: convert(list, a.sessionOf)}, err
}

func (a *API) getSession(c *call) (any, error) {
	s, err := a.Sessions.Get(c.Context(), c.who.AccountID, c.PathValue("id"))
	return a.sessionOf(s), err
}

func (a *API) closeSession(c *call) (any, error) {
	s, err := a.Sessions.Close(c.Context(), c.who.AccountID, c.PathValue("id"))
	return a.sessionOf(s), err
}

// secretsPerMinute limits the secrets that one link creates. An app needs one for each run.
const secretsPerMinute = 120

func (a *API) mintSecret(c *call) (any, error) {
	if wait := a.secrets.Take(c.who.LinkID); wait > 0 {
		return nil, rateLimited(wait, "too many session secrets created with this link",
			"Use a secret that you already created, or wait %d s.")
	}
	secret, err := a.Sessions.MintSecret(c.Context(), c.who.AccountID, c.PathValue("id"))
	c.status = http.StatusCreated
	return backendapi.SessionSecret{AppSecret: secret}, err
}

// maxEventPage limits the rows of one response, in bytes, because clients refuse more than 1 MB. A single row always
// fits, even with every character escaped.
const maxEventPage = 512 << 10

func (a *API) listEvents(c *call) (any, error) {
	var n [3]int64 // since, limit, waitMs
	for i, name := range []string{"since", "limit", "waitMs"} {
		var err error
		if n[i], err = queryInt(c.Request, name); err != nil {
			return nil, err
		}
	}
	limit, wait := int(min(n[1], sessions.MaxEvents)), time.Duration(min(n[2], backendapi.MaxWaitMs))*time.Millisecond
	page, err := a.Sessions.Events(c.Context(), c.who.AccountID, c.PathValue("id"), n[0], limit, wait)
	if err != nil {
		return nil, err
	}
	out := backendapi.EventPage{Events: make([]json.RawMessage, 0, len(page.Events)), Next: page.Next, More: page.More,
		Truncated: page.Truncated}
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

// maxControl limits the body of a control request, which consists of base64 media and other fields.
const maxControl = backendapi.MaxControlMedia/3*4 + maxBody

func (a *API) control(c *call) (any, error) {
	var body backendapi.Control
	if err := c.decode(maxControl, &body); err != nil {
		return nil, err
	}
	if len(body.Media) > backendapi.MaxControlMedia {
		return nil, problem.New(problem.CodeRequestTooLarge, "the media is over 1 MB",
			"Send a smaller picture or a shorter sound.")
	}
	if len(body.Payload) == 0 {
		body.Payload = json.RawMessage("{}")
	}
	result, err := a.Sessions.Control(c.Context(), c.who.AccountID, c.PathValue("id"), body.Type, body.Payload, body.Media)
	return backendapi.Controlled{Result: result}, err
}

// maxScript limits the body of a script. The body may contain white space that does not count towards the script's
// own limit.
const maxScript = 2 * assistantscript.MaxFile

func (a *API) setScript(c *call) (any, error) {
	text, err := readBody(c.w, c.Request, maxScript)
	if err != nil {
		return nil, err
	}
	if err := a.Scripts.SetScript(c.Context(), c.who.AccountID, c.PathValue("id"), text); err != nil {
		return nil, err
	}
	return a.getSession(c)
}

// queryInt reads a non-negative integer from the query, or returns 0 if it is absent.
func queryInt(r *http.Request, name string) (int64, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, invalidRequest(name+" must be a non-negative integer", "Leave it out or send one.")
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

// AppEndpoint returns the WebSocket URL that a session's apps connect to.
func AppEndpoint(baseURL, sessionID string) string {
	base := strings.TrimPrefix(strings.TrimSuffix(baseURL, "/"), "http")
	return "ws" + base + backendapi.PathSessions + "/" + sessionID + "/app"
}
