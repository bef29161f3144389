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

// Sessions implements the HostedSessions contract over HTTP.
type Sessions struct {
	pluginv1.UnimplementedHostedSessionsServer
	*client
}

// NewSessions returns a server for the same targets as New.
func NewSessions() *Sessions { return &Sessions{client: newClient(remote)} }

// CreateSession creates or resumes a session.
func (s *Sessions) CreateSession(
	ctx context.Context, r *pluginv1.CreateSessionRequest,
) (*pluginv1.CreateSessionResponse, error) {
	out, err := fetch[backendapi.CreatedSession](ctx, s.client, request{
		target: r.GetTarget(), method: http.MethodPost, path: backendapi.PathSessions,
		in: backendapi.SessionRequest{
			Project: r.GetProject(), Platform: r.GetPlatform(), DeviceModel: r.GetDeviceModel(), Fresh: r.GetFresh(),
		},
	})
	return &pluginv1.CreateSessionResponse{Session: sessionProto(out.Session), Created: out.Created}, err
}

// GetSession reads one session.
func (s *Sessions) GetSession(
	ctx context.Context, r *pluginv1.GetSessionRequest,
) (*pluginv1.GetSessionResponse, error) {
	out, err := s.one(ctx, r.GetTarget(), http.MethodGet, r.GetSessionId())
	return &pluginv1.GetSessionResponse{Session: out}, err
}

// ListSessions lists the open sessions, newest first.
func (s *Sessions) ListSessions(
	ctx context.Context, r *pluginv1.ListSessionsRequest,
) (*pluginv1.ListSessionsResponse, error) {
	out, err := fetch[backendapi.SessionList](ctx, s.client, request{
		target: r.GetTarget(), method: http.MethodGet, path: backendapi.PathSessions,
	})
	list := make([]*pluginv1.Session, 0, len(out.Sessions))
	for _, one := range out.Sessions {
		list = append(list, sessionProto(one))
	}
	return &pluginv1.ListSessionsResponse{Sessions: list}, err
}

// CloseSession closes a session.
func (s *Sessions) CloseSession(
	ctx context.Context, r *pluginv1.CloseSessionRequest,
) (*pluginv1.CloseSessionResponse, error) {
	out, err := s.one(ctx, r.GetTarget(), http.MethodDelete, r.GetSessionId())
	return &pluginv1.CloseSessionResponse{Session: out}, err
}

// one makes a request about a session whose response is the session.
func (s *Sessions) one(ctx context.Context, t *pluginv1.Target, method, id string) (*pluginv1.Session, error) {
	out, err := fetch[backendapi.Session](ctx, s.client, request{target: t, method: method, path: sessionPath(id)})
	return sessionProto(out), err
}

// MintSessionSecret creates an additional app secret for a session.
func (s *Sessions) MintSessionSecret(
	ctx context.Context, r *pluginv1.MintSessionSecretRequest,
) (*pluginv1.MintSessionSecretResponse, error) {
	out, err := fetch[backendapi.SessionSecret](ctx, s.client, request{
		target: r.GetTarget(), method: http.MethodPost, path: sessionPath(r.GetSessionId()) + "/secrets",
		in: struct{}{},
	})
	return &pluginv1.MintSessionSecretResponse{AppSecret: out.AppSecret}, err
}

// ListEvents returns the rows of the event log after a cursor.
func (s *Sessions) ListEvents(
	ctx context.Context, r *pluginv1.ListEventsRequest,
) (*pluginv1.ListEventsResponse, error) {
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
	out, err := fetch[backendapi.EventPage](ctx, s.client, request{
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
func (s *Sessions) Control(ctx context.Context, r *pluginv1.ControlRequest) (*pluginv1.ControlResponse, error) {
	in := backendapi.Control{Type: r.GetType(), Payload: r.GetPayload(), Media: r.GetMedia()}
	if len(in.Payload) == 0 {
		in.Payload = json.RawMessage("{}")
	}
	if !json.Valid(in.Payload) {
		return nil, unfit("the payload is not JSON", "Send a JSON object.")
	}
	out, err := fetch[backendapi.Controlled](ctx, s.client, request{
		target: r.GetTarget(), method: http.MethodPost, path: sessionPath(r.GetSessionId()) + "/control",
		in: in, longer: controlWait,
	})
	return &pluginv1.ControlResponse{Result: out.Result}, err
}

// SetAssistantScript sets the script of a session's assistant.
func (s *Sessions) SetAssistantScript(
	ctx context.Context, r *pluginv1.SetAssistantScriptRequest,
) (*pluginv1.SetAssistantScriptResponse, error) {
	if !json.Valid(r.GetScript()) {
		return nil, unfit("the script is not JSON", "Send a JSON object.")
	}
	_, err := fetch[backendapi.Session](ctx, s.client, request{
		target: r.GetTarget(), method: http.MethodPost,
		path: sessionPath(r.GetSessionId()) + backendapi.PathAssistantScript, in: json.RawMessage(r.GetScript()),
	})
	return &pluginv1.SetAssistantScriptResponse{}, err
}

func sessionPath(id string) string { return backendapi.PathSessions + "/" + url.PathEscape(id) }
