package httpbackend

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/service-dev/service/internal/buildinfo"
	"github.com/service-dev/service/internal/loopback"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/plugins/internal/serve"
	"github.com/service-dev/service/proto/backendapi"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

// Limits of one call. Six consecutive failures, including the pauses between them, must take at most 45 s.
const (
	dialTimeout = 3 * time.Second
	callTimeout = 10 * time.Second
	// maxBody is the maximum length of a response body in bytes; a longer one is malformed.
	maxBody = 1 << 20
	// maxHeader is the maximum length of each header about the requester, as in the backend.
	maxHeader = 100
)

// client calls backends.
type client struct {
	locate func(context.Context, *pluginv1.Target) (string, error)
	plain  *clients // clients for http

	mu     sync.Mutex
	secure *clients // clients for https; nil before the first call
}

func newClient(locate func(context.Context, *pluginv1.Target) (string, error)) *client {
	plain, _ := newClients(networkState{}) // cannot fail without a certificate file
	return &client{locate: locate, plain: plain}
}

// Close closes idle connections.
func (c *client) Close(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.plain.closeIdle()
	if c.secure != nil {
		c.secure.closeIdle()
	}
	return nil
}

// newHTTP returns an HTTP client with at most atOnce connections per backend. It does not follow redirects, because
// credentials must be sent only to the configured URL.
func newHTTP(atOnce int) *http.Client {
	dialer := &net.Dialer{Timeout: dialTimeout}
	return &http.Client{
		Timeout: callTimeout,
		Transport: &http.Transport{
			OnProxyConnectResponse: checkProxyAnswer,
			DialContext:            dialer.DialContext,
			TLSHandshakeTimeout:    dialTimeout,
			ForceAttemptHTTP2:      true,
			MaxIdleConnsPerHost:    4,
			MaxConnsPerHost:        atOnce,
			IdleConnTimeout:        90 * time.Second,
			MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// remote validates and returns the URL in the target.
func remote(_ context.Context, t *pluginv1.Target) (string, error) {
	u, err := url.Parse(t.GetBaseUrl())
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") || u.User != nil {
		return "", unfit("the backend URL is not an absolute http or https URL",
			"Check SERVICE_BACKEND_URL and backend_url in config.yaml.")
	}
	if u.Scheme == "http" && !loopback.IsHost(u.Hostname()) {
		return "", unfit("plain http would send the token over the network unencrypted",
			"Use https:// in SERVICE_BACKEND_URL and backend_url of config.yaml. Plain http is only for this machine.")
	}
	u.RawQuery, u.Fragment = "", ""
	return u.String(), nil
}

// request is one call.
type request struct {
	target *pluginv1.Target
	route  backendapi.Route
	path   string // path with the query
	body   []byte
	wait   time.Duration // additional time for the backend beyond callTimeout
}

// isPoll reports whether the device code is the request's credential. Then pollStatuses applies.
func (r request) isPoll() bool {
	return r.route.Name == backendapi.RoutePollCode || r.route.Name == backendapi.RouteCancelCode
}

// do makes one call. On failure it returns a gRPC status with a Problem, or the caller's cancellation.
func (c *client) do(ctx context.Context, r request) (*pluginv1.CallResponse, error) {
	base, err := c.locate(ctx, r.target)
	if err != nil {
		return nil, err
	}
	req, err := build(ctx, strings.TrimRight(base, "/"), r)
	if err != nil {
		return nil, err
	}
	use, err := c.clientsFor(base, r.target.GetNetwork())
	if err != nil {
		return nil, err
	}
	caller := *use.http
	if r.wait > 0 {
		caller = *use.patient
		caller.Timeout += r.wait
	}
	resp, err := caller.Do(req)
	if err != nil {
		return nil, transport(ctx, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	switch {
	case err != nil:
		return nil, transport(ctx, err)
	case !r.succeeded(resp.StatusCode):
		return nil, refusal(resp, body, r.isPoll())
	case r.route.NoContent:
		body = nil
	case len(body) > maxBody:
		return nil, malformed(resp.StatusCode, "its response is longer than 1 MB")
	}
	return &pluginv1.CallResponse{Status: uint32(resp.StatusCode), Body: body}, nil
}

// succeeded reports whether a status means success for this call.
func (r request) succeeded(status int) bool {
	switch status {
	case http.StatusOK:
		return true
	case http.StatusCreated, http.StatusAccepted:
		return !r.isPoll()
	case http.StatusNoContent:
		return r.route.NoContent
	}
	return false
}

func build(ctx context.Context, base string, r request) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, r.route.Method(), base+r.path, bytes.NewReader(r.body))
	if err != nil {
		return nil, status.Error(codes.Internal, "build request")
	}
	if len(r.body) > 0 {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "service/"+buildinfo.Version)
	if r.route.Caller == backendapi.Install { // send no other headers about the requester
		req.Header.Set(backendapi.HeaderInstallID, r.target.GetInstallId())
	} else {
		credential(req.Header, r.target)
	}
	return req, nil
}

// credential sets either the bearer token or the install ID, never both, and the headers about the requester.
func credential(h http.Header, t *pluginv1.Target) {
	if bearer := t.GetBearer(); bearer != "" {
		h.Set("Authorization", "Bearer "+bearer)
	} else if id := t.GetInstallId(); id != "" {
		h.Set(backendapi.HeaderInstallID, id)
	}
	for name, value := range map[string]string{
		backendapi.HeaderHost:   t.GetRequester().GetHost(),
		backendapi.HeaderOS:     t.GetRequester().GetOs(),
		backendapi.HeaderClient: t.GetRequester().GetClient(),
	} {
		if value = printable(value, maxHeader); value != "" {
			h.Set(name, value)
		}
	}
}

// printable replaces all characters except printable ASCII with ? and truncates s to n bytes.
func printable(s string, n int) string {
	var b strings.Builder
	for _, r := range s {
		if b.Len() >= n {
			break
		}
		if r >= ' ' && r <= '~' {
			b.WriteRune(r)
		} else {
			b.WriteByte('?')
		}
	}
	return strings.TrimSpace(b.String())
}

func unfit(message, hint string) error {
	return serve.Refuse(codes.InvalidArgument, &pluginv1.Problem{
		Code: problem.CodeInvalidRequest, Message: message, FixHint: hint,
	})
}
