package pluginhost

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/proto/backendapi"
)

// ofSession returns a request about a session, or about all of them if the route has no id.
func ofSession(route, id string) request {
	return request{route: route, path: map[string]string{"id": id}, hosted: true}
}

// CreateSession creates or resumes a session. created reports which.
func (h *Host) CreateSession(ctx context.Context, t backend.Target, q backendapi.SessionRequest) (s backend.Session,
	created bool, err error) {
	req := ofSession(backendapi.RouteOpenSession, "")
	req.body = q
	r, err := fetch[backendapi.CreatedSession](ctx, h, t, req)
	return session(r.Session), r.Created, err
}

// GetSession reads one session.
func (h *Host) GetSession(ctx context.Context, t backend.Target, id string) (backend.Session, error) {
	s, err := fetch[backendapi.Session](ctx, h, t, ofSession(backendapi.RouteSession, id))
	return session(s), err
}

// ListSessions lists the open sessions of the linked account, newest first.
func (h *Host) ListSessions(ctx context.Context, t backend.Target) ([]backend.Session, error) {
	r, err := fetch[backendapi.SessionList](ctx, h, t, ofSession(backendapi.RouteSessions, ""))
	if err != nil {
		return nil, err
	}
	list := make([]backend.Session, 0, len(r.Sessions))
	for _, s := range r.Sessions {
		list = append(list, session(s))
	}
	return list, nil
}

// CloseSession closes a session. Closing a closed session is not an error.
func (h *Host) CloseSession(ctx context.Context, t backend.Target, id string) (backend.Session, error) {
	s, err := fetch[backendapi.Session](ctx, h, t, ofSession(backendapi.RouteCloseSession, id))
	return session(s), err
}

// MintSessionSecret creates an additional app secret for an open session. The result is a secret.
func (h *Host) MintSessionSecret(ctx context.Context, t backend.Target, id string) (string, error) {
	req := ofSession(backendapi.RouteMintSecret, id)
	req.body = struct{}{}
	r, err := fetch[backendapi.SessionSecret](ctx, h, t, req)
	return r.AppSecret, err
}

// ListEvents returns the rows of the event log after the cursor since. It returns at most limit rows, or 100 if limit
// is 0.
func (h *Host) ListEvents(ctx context.Context, t backend.Target, id string, since int64, limit int) (
	backendapi.EventPage, error) {
	return h.WaitEvents(ctx, t, id, since, limit, 0)
}

// maxWait is the maximum wait of WaitEvents.
const maxWait = backendapi.MaxWaitMs * time.Millisecond

// WaitEvents is like ListEvents, but waits up to 25 s for a row if there is none. An empty page is not an error.
func (h *Host) WaitEvents(
	ctx context.Context, t backend.Target, id string, since int64, limit int, wait time.Duration,
) (backendapi.EventPage, error) {
	wait = min(max(wait, 0), maxWait)
	req := ofSession(backendapi.RouteEvents, id)
	req.wait = wait
	req.query = map[string]string{"since": strconv.FormatInt(since, 10), "limit": "100"}
	if limit > 0 {
		req.query["limit"] = strconv.Itoa(min(limit, 500))
	}
	if ms := wait.Milliseconds(); ms > 0 {
		req.query["waitMs"] = strconv.FormatInt(ms, 10)
	}
	return fetch[backendapi.EventPage](ctx, h, t, req)
}

// controlWait is how long a backend waits for a result of the simulator page.
const controlWait = 10 * time.Second

// Control sends a control request to a session's simulated glasses and returns the payload of their result
// (glasses.Result). The result may be an error of the glasses.
func (h *Host) Control(
	ctx context.Context, t backend.Target, id, typ string, payload json.RawMessage, media []byte,
) (json.RawMessage, error) {
	if len(payload) == 0 {
		payload = json.RawMessage("{}")
	}
	req := ofSession(backendapi.RouteControl, id)
	req.wait, req.body = controlWait, backendapi.Control{Type: typ, Payload: payload, Media: media}
	r, err := fetch[backendapi.Controlled](ctx, h, t, req)
	return r.Result, err
}

// SetAssistantScript sets the script of a session's assistant.
func (h *Host) SetAssistantScript(ctx context.Context, t backend.Target, id string, script []byte) error {
	req := ofSession(backendapi.RouteAssistantScript, id)
	req.body = json.RawMessage(script)
	_, err := fetch[backendapi.Session](ctx, h, t, req)
	return err
}
