package httpbackend

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/service-dev/service/plugins/internal/serve"
	"github.com/service-dev/service/proto/backendapi"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

// CreateSession creates or resumes a session.
func (s *Server) CreateSession(ctx context.Context, r *pluginv1.CreateSessionRequest) (*pluginv1.CreateSessionResponse, error) {
	in := backendapi.SessionRequest{Project: r.GetProject(), Platform: r.GetPlatform(), DeviceModel: r.GetDeviceModel(), Fresh: r.GetFresh()}
	var out session
	if err := s.do(ctx, request{target: r.GetTarget(), method: http.MethodPost, path: backendapi.PathSessions, in: in, out: &out}); err != nil {
		return nil, err
	}
	return &pluginv1.CreateSessionResponse{Session: out.proto(), Created: out.Created}, nil
}

// GetSession reads one session.
func (s *Server) GetSession(ctx context.Context, r *pluginv1.GetSessionRequest) (*pluginv1.GetSessionResponse, error) {
	var out session
	if err := s.do(ctx, request{target: r.GetTarget(), method: http.MethodGet, path: sessionPath(r.GetSessionId()), out: &out}); err != nil {
		return nil, err
	}
	return &pluginv1.GetSessionResponse{Session: out.proto()}, nil
}

// ListSessions lists the open sessions, newest first.
func (s *Server) ListSessions(ctx context.Context, r *pluginv1.ListSessionsRequest) (*pluginv1.ListSessionsResponse, error) {
	var out sessionList
	if err := s.do(ctx, request{target: r.GetTarget(), method: http.MethodGet, path: backendapi.PathSessions, out: &out}); err != nil {
		return nil, err
	}
	list := make([]*pluginv1.Session, 0, len(*out.Sessions))
	for _, one := range *out.Sessions {
		list = append(list, one.proto())
	}
	return &pluginv1.ListSessionsResponse{Sessions: list}, nil
}

// CloseSession ends a session.
func (s *Server) CloseSession(ctx context.Context, r *pluginv1.CloseSessionRequest) (*pluginv1.CloseSessionResponse, error) {
	var out session
	if err := s.do(ctx, request{target: r.GetTarget(), method: http.MethodDelete, path: sessionPath(r.GetSessionId()), out: &out}); err != nil {
		return nil, err
	}
	return &pluginv1.CloseSessionResponse{Session: out.proto()}, nil
}

// MintSessionSecret mints one more app secret.
func (s *Server) MintSessionSecret(ctx context.Context, r *pluginv1.MintSessionSecretRequest) (*pluginv1.MintSessionSecretResponse, error) {
	var out appSecret
	path := sessionPath(r.GetSessionId()) + "/secrets"
	if err := s.do(ctx, request{target: r.GetTarget(), method: http.MethodPost, path: path, in: struct{}{}, out: &out}); err != nil {
		return nil, err
	}
	return &pluginv1.MintSessionSecretResponse{AppSecret: out.AppSecret}, nil
}

// ListEvents reads the event log after a cursor.
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
	var out eventPage
	path := sessionPath(r.GetSessionId()) + "/events?" + query.Encode()
	if err := s.do(ctx, request{
		target: r.GetTarget(), method: http.MethodGet, path: path, out: &out, longer: time.Duration(wait) * time.Millisecond,
	}); err != nil {
		return nil, err
	}
	events := make([]string, 0, len(*out.Events))
	for _, e := range *out.Events {
		events = append(events, strings.ToValidUTF8(string(e), "\uFFFD"))
	}
	return &pluginv1.ListEventsResponse{Events: events, Next: out.Next, More: out.More, Truncated: out.Truncated}, nil
}

// controlWait is how long the backend waits for the page's result.
const controlWait = 10 * time.Second

// Control brings one control frame to the session's simulator page and its result back.
func (s *Server) Control(ctx context.Context, r *pluginv1.ControlRequest) (*pluginv1.ControlResponse, error) {
	in := backendapi.Control{Type: r.GetType(), Payload: r.GetPayload(), Media: r.GetMedia()}
	if len(in.Payload) == 0 {
		in.Payload = json.RawMessage("{}")
	}
	if !json.Valid(in.Payload) {
		return nil, serve.Refuse(codes.InvalidArgument, &pluginv1.Problem{
			Code: backendapi.CodeInvalidRequest, Message: "the payload is not JSON", FixHint: "Send a JSON object.",
		})
	}
	var out controlled
	if err := s.do(ctx, request{
		target: r.GetTarget(), method: http.MethodPost, path: sessionPath(r.GetSessionId()) + "/control", in: in, out: &out, longer: controlWait,
	}); err != nil {
		return nil, err
	}
	return &pluginv1.ControlResponse{Result: out.Result}, nil
}

// MintProjectKey mints a key of a project.
func (s *Server) MintProjectKey(ctx context.Context, r *pluginv1.MintProjectKeyRequest) (*pluginv1.MintProjectKeyResponse, error) {
	var out projectKey
	path := backendapi.PathProjects + "/" + url.PathEscape(r.GetProject()) + "/keys"
	in := backendapi.ProjectKeyRequest{Name: r.GetName()}
	if err := s.do(ctx, request{target: r.GetTarget(), method: http.MethodPost, path: path, in: in, out: &out}); err != nil {
		return nil, err
	}
	return &pluginv1.MintProjectKeyResponse{ProjectKey: out.ProjectKey.ProjectKey, Hint: out.Hint, CreatedAt: out.createdAt}, nil
}

func sessionPath(id string) string { return backendapi.PathSessions + "/" + url.PathEscape(id) }
