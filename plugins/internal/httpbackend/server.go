// Package httpbackend implements adapter contracts by calling a backend over the HTTP contract of proto/backendapi:
// Server implements Backend for backendhttp and backendlocal, Sessions HostedSessions for browsersim. Every error
// response, malformed response and network failure becomes a typed Problem. The package must not depend on the daemon
// or on which adapter uses it, stores no links or sessions, and never logs the content of requests or responses.
package httpbackend

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/service-dev/service/internal/buildinfo"
	"github.com/service-dev/service/proto/backendapi"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

// Server implements the Backend contract over HTTP.
type Server struct {
	pluginv1.UnimplementedBackendServer
	*client
	name string
}

// New returns a server for targets that contain the URL of their backend: an absolute https URL, or an http URL on
// this machine.
func New(name string) *Server { return NewAt(name, remote) }

// NewAt returns a server that calls locate for the URL of a target's backend. Errors of locate are returned
// unchanged.
func NewAt(name string, locate func(context.Context, *pluginv1.Target) (string, error)) *Server {
	return &Server{client: newClient(locate), name: name}
}

// Describe returns the adapter's name and version.
func (s *Server) Describe(context.Context, *pluginv1.DescribeRequest) (*pluginv1.DescribeResponse, error) {
	return &pluginv1.DescribeResponse{Name: s.name, Version: buildinfo.Version}, nil
}

// Activity returns an empty response: a remote backend does not require the adapter to keep running.
func (s *Server) Activity(context.Context, *pluginv1.ActivityRequest) (*pluginv1.ActivityResponse, error) {
	return &pluginv1.ActivityResponse{}, nil
}

// Health returns the backend's health.
func (s *Server) Health(ctx context.Context, r *pluginv1.HealthRequest) (*pluginv1.HealthResponse, error) {
	h, err := fetch[backendapi.Health](ctx, s.client, request{
		target: r.GetTarget(), method: http.MethodGet, path: backendapi.PathHealth, anonymous: true,
	})
	return &pluginv1.HealthResponse{
		Ok: h.OK, Service: h.Service, Version: h.Version, Commit: h.Commit, BuiltAt: h.BuiltAt,
		UptimeMs: h.UptimeMs, Phase: h.Phase, Hints: h.Hints,
	}, err
}

// IssueDeviceCode starts a device-code flow.
func (s *Server) IssueDeviceCode(
	ctx context.Context, r *pluginv1.IssueDeviceCodeRequest,
) (*pluginv1.IssueDeviceCodeResponse, error) {
	c, err := fetch[backendapi.DeviceCode](ctx, s.client, request{
		target: r.GetTarget(), method: http.MethodPost, path: backendapi.PathDeviceCode,
		in: backendapi.DeviceCodeRequest{Scope: r.GetScope()},
	})
	return &pluginv1.IssueDeviceCodeResponse{DeviceCode: deviceCodeProto(c)}, err
}

// PollDeviceToken polls once. The device code is the only credential.
func (s *Server) PollDeviceToken(
	ctx context.Context, r *pluginv1.PollDeviceTokenRequest,
) (*pluginv1.PollDeviceTokenResponse, error) {
	p, err := fetch[poll](ctx, s.client, request{
		target: r.GetTarget(), method: http.MethodPost, path: backendapi.PathDeviceToken, statuses: pollStatuses,
		in: backendapi.TokenRequest{DeviceCode: r.GetDeviceCode()},
	})
	if err != nil {
		return nil, err
	}
	if p.Pending {
		return &pluginv1.PollDeviceTokenResponse{Outcome: &pluginv1.PollDeviceTokenResponse_Pending{
			Pending: &pluginv1.Pending{PollIntervalSeconds: p.PollIntervalSeconds},
		}}, nil
	}
	return &pluginv1.PollDeviceTokenResponse{Outcome: &pluginv1.PollDeviceTokenResponse_Token{Token: &pluginv1.Token{
		AuthToken: p.AuthToken, AccountId: p.AccountID, Tier: p.Tier, LinkedAt: p.LinkedAt, ExpiresAt: p.ExpiresAt,
	}}}, nil
}

// CancelDeviceCode cancels a device code, which is the only credential.
func (s *Server) CancelDeviceCode(
	ctx context.Context, r *pluginv1.CancelDeviceCodeRequest,
) (*pluginv1.CancelDeviceCodeResponse, error) {
	err := s.do(ctx, request{
		target: r.GetTarget(), method: http.MethodPost, path: backendapi.PathDeviceCancel, statuses: pollStatuses,
		in: backendapi.TokenRequest{DeviceCode: r.GetDeviceCode()},
	})
	return &pluginv1.CancelDeviceCodeResponse{}, err
}

// RevokeLink revokes the target's own bearer token.
func (s *Server) RevokeLink(ctx context.Context, r *pluginv1.RevokeLinkRequest) (*pluginv1.RevokeLinkResponse, error) {
	if r.GetTarget().GetBearer() == "" {
		return nil, unfit("no token to revoke", "Set the token as the target's bearer.")
	}
	err := s.do(ctx, request{target: r.GetTarget(), method: http.MethodDelete, path: backendapi.PathAccountLink})
	return &pluginv1.RevokeLinkResponse{}, err
}

// GetAccount returns the account that a token belongs to.
func (s *Server) GetAccount(ctx context.Context, r *pluginv1.GetAccountRequest) (*pluginv1.GetAccountResponse, error) {
	a, err := fetch[backendapi.Account](ctx, s.client, request{
		target: r.GetTarget(), method: http.MethodGet, path: backendapi.PathAccount,
	})
	return &pluginv1.GetAccountResponse{
		AccountId: a.AccountID, Tier: a.Tier, LinkedAt: a.LinkedAt, ExpiresAt: a.ExpiresAt, Email: a.Email,
	}, err
}

// MintProjectKey creates a project key.
func (s *Server) MintProjectKey(
	ctx context.Context, r *pluginv1.MintProjectKeyRequest,
) (*pluginv1.MintProjectKeyResponse, error) {
	out, err := fetch[backendapi.ProjectKey](ctx, s.client, request{
		target: r.GetTarget(), method: http.MethodPost,
		path: backendapi.PathProjects + "/" + url.PathEscape(r.GetProject()) + "/keys",
		in:   backendapi.ProjectKeyRequest{Name: r.GetName()},
	})
	created, _ := time.Parse(time.RFC3339Nano, out.CreatedAt) // fetch has checked the format
	return &pluginv1.MintProjectKeyResponse{
		ProjectKey: out.ProjectKey, Hint: out.Hint, CreatedAt: created.UnixMilli(),
	}, err
}
