// Package httpbackend is the HTTP contract of proto/backendapi seen from its client: it answers the adapter contract by
// calling a backend over HTTP, and turns every refusal, every malformed answer and every failure of the network into
// one typed Problem. backendhttp and backendlocal share it. It knows neither the daemon nor which of the two it serves,
// keeps no link and no session, and never logs what it carries.
package httpbackend

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/service-dev/service/plugins/internal/serve"
	"github.com/service-dev/service/proto/backendapi"
	"github.com/service-dev/service/proto/buildinfo"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

// Server answers the adapter contract over HTTP. Locate gives the backend's base URL for a target.
type Server struct {
	pluginv1.UnimplementedBackendServer
	name   string
	locate func(context.Context, *pluginv1.Target) (string, error)
	client *http.Client
	// patient is for calls that the backend keeps waiting: each has a connection to itself for so long, and must not take
	// those of the others.
	patient *http.Client
	large   chan struct{} // holds one while a large answer is decoded
}

// New is a server whose targets name their backend: an absolute https URL, or an http one of this machine.
func New(name string) *Server { return NewAt(name, remote) }

// NewAt is a server that asks locate where a target's backend is. Errors of locate are passed on as they are.
func NewAt(name string, locate func(context.Context, *pluginv1.Target) (string, error)) *Server {
	return &Server{
		name: name, locate: locate, client: newClient(32), patient: newClient(1024), large: make(chan struct{}, 1),
	}
}

// remote reads the address that the target names.
func remote(_ context.Context, t *pluginv1.Target) (string, error) {
	u, err := url.Parse(t.GetBaseUrl())
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") || u.User != nil {
		return "", serve.Refuse(codes.InvalidArgument, &pluginv1.Problem{
			Code:    backendapi.CodeInvalidRequest,
			Message: "the backend address is not an absolute http or https URL",
			FixHint: "Check SERVICE_BACKEND_URL and backend_url in config.yaml.",
		})
	}
	if u.Scheme == "http" && !isLoopback(u.Hostname()) {
		return "", serve.Refuse(codes.InvalidArgument, &pluginv1.Problem{
			Code:    backendapi.CodeInvalidRequest,
			Message: "plain http would send the token over the network unencrypted",
			FixHint: "Use https:// in SERVICE_BACKEND_URL and in backend_url of config.yaml; plain http is accepted for this machine alone.",
		})
	}
	u.RawQuery, u.Fragment = "", ""
	return u.String(), nil
}

// isLoopback reports whether a host of a URL is this machine.
func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// Close lets go of idle connections.
func (s *Server) Close(context.Context) error {
	s.client.CloseIdleConnections()
	s.patient.CloseIdleConnections()
	return nil
}

// Describe names the adapter.
func (s *Server) Describe(context.Context, *pluginv1.DescribeRequest) (*pluginv1.DescribeResponse, error) {
	return &pluginv1.DescribeResponse{Name: s.name, Version: buildinfo.Version}, nil
}

// Activity is nothing: a remote backend needs nobody to stay.
func (s *Server) Activity(context.Context, *pluginv1.ActivityRequest) (*pluginv1.ActivityResponse, error) {
	return &pluginv1.ActivityResponse{}, nil
}

// Health asks the backend how it is.
func (s *Server) Health(ctx context.Context, r *pluginv1.HealthRequest) (*pluginv1.HealthResponse, error) {
	var h health
	if err := s.do(ctx, request{target: r.GetTarget(), method: http.MethodGet, path: backendapi.PathHealth, anonymous: true, out: &h}); err != nil {
		return nil, err
	}
	return &pluginv1.HealthResponse{
		Ok: h.OK, Service: h.Service, Version: h.Version, Commit: h.Commit, BuiltAt: h.BuiltAt,
		UptimeMs: h.UptimeMs, Phase: h.Phase, Hints: h.Hints,
	}, nil
}

// IssueDeviceCode starts a device-code flow.
func (s *Server) IssueDeviceCode(ctx context.Context, r *pluginv1.IssueDeviceCodeRequest) (*pluginv1.IssueDeviceCodeResponse, error) {
	var c deviceCode
	in := backendapi.DeviceCodeRequest{Scope: r.GetScope()}
	if err := s.do(ctx, request{target: r.GetTarget(), method: http.MethodPost, path: backendapi.PathDeviceCode, in: in, out: &c}); err != nil {
		return nil, err
	}
	return &pluginv1.IssueDeviceCodeResponse{DeviceCode: c.proto()}, nil
}

// PollDeviceToken makes one poll. It carries no credential besides the code.
func (s *Server) PollDeviceToken(ctx context.Context, r *pluginv1.PollDeviceTokenRequest) (*pluginv1.PollDeviceTokenResponse, error) {
	var p poll
	in := backendapi.TokenRequest{DeviceCode: r.GetDeviceCode()}
	if err := s.do(ctx, request{target: r.GetTarget(), method: http.MethodPost, path: backendapi.PathDeviceToken, in: in, out: &p, statuses: pollStatuses}); err != nil {
		return nil, err
	}
	if p.pending() {
		return &pluginv1.PollDeviceTokenResponse{Outcome: &pluginv1.PollDeviceTokenResponse_Pending{
			Pending: &pluginv1.Pending{PollIntervalSeconds: p.PollIntervalSeconds},
		}}, nil
	}
	return &pluginv1.PollDeviceTokenResponse{Outcome: &pluginv1.PollDeviceTokenResponse_Token{Token: &pluginv1.Token{
		AuthToken: p.AuthToken, AccountId: p.AccountID, Tier: p.Tier, LinkedAt: p.LinkedAt, ExpiresAt: p.ExpiresAt,
	}}}, nil
}

// RevokeLink revokes the target's own bearer.
func (s *Server) RevokeLink(ctx context.Context, r *pluginv1.RevokeLinkRequest) (*pluginv1.RevokeLinkResponse, error) {
	if r.GetTarget().GetBearer() == "" {
		return nil, unfit("there is no token to revoke", "Name the token as the target's bearer.")
	}
	if err := s.do(ctx, request{target: r.GetTarget(), method: http.MethodDelete, path: backendapi.PathAccountLink}); err != nil {
		return nil, err
	}
	return &pluginv1.RevokeLinkResponse{}, nil
}

// GetAccount tells who a token is.
func (s *Server) GetAccount(ctx context.Context, r *pluginv1.GetAccountRequest) (*pluginv1.GetAccountResponse, error) {
	var a account
	if err := s.do(ctx, request{target: r.GetTarget(), method: http.MethodGet, path: backendapi.PathAccount, out: &a}); err != nil {
		return nil, err
	}
	return &pluginv1.GetAccountResponse{AccountId: a.AccountID, Tier: a.Tier, LinkedAt: a.LinkedAt, ExpiresAt: a.ExpiresAt}, nil
}
