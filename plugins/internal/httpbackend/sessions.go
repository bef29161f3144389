package httpbackend

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/service-dev/service/proto/backendapi"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

// CreateSession creates or resumes a session.
func (s *Server) CreateSession(
	ctx context.Context, r *pluginv1.CreateSessionRequest,
) (*pluginv1.CreateSessionResponse, error) {
	out, err := fetch[backendapi.CreatedSession](ctx, s, request{
		target: r.GetTarget(), method: http.MethodPost, path: backendapi.PathSessions,
		in: backendapi.SessionRequest{
			Project: r.GetProject(), Platform: r.GetPlatform(), DeviceModel: r.GetDeviceModel(), Fresh: r.GetFresh(),
		},
	})
	return &pluginv1.CreateSessionResponse{Session: sessionProto(out.Session), Created: out.Created}, err
}

// GetSession reads one session.
func (s *Server) GetSession(ctx context.Context, r *pluginv1.GetSessionRequest) (*pluginv1.GetSessionResponse, error) {
	out, err := fetch[backendapi.Session](ctx, s, request{
		target: r.GetTarget(), method: http.MethodGet, path: sessionPath(r.GetSessionId()),
	})
	return &pluginv1.GetSessionResponse{Session: sessionProto(out)}, err
}

// ListSessions lists the open sessions, newest first.
func (s *Server) ListSessions(
	ctx context.Context, r *pluginv1.ListSessionsRequest,
) (*pluginv1.ListSessionsResponse, error) {
	out, err := fetch[backendapi.SessionList](ctx, s, request{
		target: r.GetTarget(), method: http.MethodGet, path: backendapi.PathSessions,
	})
	list := make([]*pluginv1.Session, 0, len(out.Sessions))
	for _, one := range out.Sessions {
		list = append(list, sessionProto(one))
	}
	return &pluginv1.ListSessionsResponse{Sessions: list}, err
}

// CloseSession closes a session.
func (s *Server) CloseSession(
	ctx context.Context, r *pluginv1.CloseSessionRequest,
) (*pluginv1.CloseSessionResponse, error) {
	out, err := fetch[backendapi.Session](ctx, s, request{
		target: r.GetTarget(), method: http.MethodDelete, path: sessionPath(r.GetSessionId()),
	})
	return &pluginv1.CloseSessionResponse{Session: sessionProto(out)}, err
}

// MintSessionSecret creates an additional app secret for a session.
func (s *Server) MintSessionSecret(
	ctx context.Context, r *pluginv1.MintSessionSecretRequest,
) (*pluginv1.MintSessionSecretResponse, error) {
	out, err := fetch[backendapi.SessionSecret](ctx, s, request{
		target: r.GetTarget(), method: http.MethodPost, path: sessionPath(r.GetSessionId()) + "/secrets",
		in: struct{}{},
	})
	return &pluginv1.MintSessionSecretResponse{AppSecret: out.AppSecret}, err
}

// ListEvents returns the rows of the event log after a cursor.
func (s *Server) ListEvents(ctx context.Context, r *pluginv1.ListEventsRequest) (*pluginv1.ListEventsResponse, error) {
	limit := r.GetLimit()
	if limit == 0 {
		limit = 100
	}
	query := url.Values{
		"since": {strconv.FormatInt(r.GetSince(), 10)},
		"limit": {strconv.FormatUint(uint64(min(limit, 500)), 10)},
	}
	wait := min(max(r.GetWaitMs(), 0), backendapi.MaxWaitMs)
	if wait > 0 {
		query.Set("waitMs", strconv.Itoa(int(wait)))
	}
	out, err := fetch[backendapi.EventPage](ctx, s, request{
		target: r.GetTarget(), method: http.MethodGet,
		path:   sessionPath(r.GetSessionId()) + "/events?" + query.Encode(),
		longer: time.Duration(wait) * time.Millisecond,
	})
	events := make([]string, 0, len(out.Events))
	for _, e := range out.Events {
		events = append(events, strings.ToValidUTF8(string(e), "\uFFFD"))
	}
	return &pluginv1.ListEventsResponse{Events: events, Next: out.Next, More: out.More, Truncated: out.Truncated}, err
}

// controlWait is how long the backend waits for the simulator page's result.
const controlWait = 10 * time.Second

// Control sends one control frame to the session's simulator page and returns its result.
func (s *Server) Control(ctx context.Context, r *pluginv1.ControlRequest) (*pluginv1.ControlResponse, error) {
	in := backendapi.Control{Type: r.GetType(), Payload: r.GetPayload(), Media: r.GetMedia()}
	if len(in.Payload) == 0 {
		in.Payload = json.RawMessage("{}")
	}
	if !json.Valid(in.Payload) {
		return nil, unfit("the payload is not JSON", "Send a JSON object.")
	}
	out, err := fetch[backendapi.Controlled](ctx, s, request{
		target: r.GetTarget(), method: http.MethodPost, path: sessionPath(r.GetSessionId()) + "/control",
		in: in, longer: controlWait,
	})
	return &pluginv1.ControlResponse{Result: out.Result}, err
}

// SetAssistantScript sets the script of a session's assistant.
func (s *Server) SetAssistantScript(
	ctx context.Context, r *pluginv1.SetAssistantScriptRequest,
) (*pluginv1.SetAssistantScriptResponse, error) {
	if !json.Valid(r.GetScript()) {
		return nil, unfit("the script is not JSON", "Send a JSON object.")
	}
	_, err := fetch[backendapi.Session](ctx, s, request{
		target: r.GetTarget(), method: http.MethodPost,
		path: sessionPath(r.GetSessionId()) + backendapi.PathAssistantScript, in: json.RawMessage(r.GetScript()),
	})
	return &pluginv1.SetAssistantScriptResponse{}, err
}

// MintProjectKey creates a project key.
func (s *Server) MintProjectKey(
	ctx context.Context, r *pluginv1.MintProjectKeyRequest,
) (*pluginv1.MintProjectKeyResponse, error) {
	out, err := fetch[backendapi.ProjectKey](ctx, s, request{
		target: r.GetTarget(), method: http.MethodPost,
		path: backendapi.PathProjects + "/" + url.PathEscape(r.GetProject()) + "/keys",
		in:   backendapi.ProjectKeyRequest{Name: r.GetName()},
	})
	created, _ := time.Parse(time.RFC3339Nano, out.CreatedAt) // fetch has checked the format
	return &pluginv1.MintProjectKeyResponse{
		ProjectKey: out.ProjectKey, Hint: out.Hint, CreatedAt: created.UnixMilli(),
	}, err
}

func sessionPath(id string) string { return backendapi.PathSessions + "/" + url.PathEscape(id) }
