package httpbackend

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	"github.com/service-dev/service/proto/backendapi"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

// Limits of one call. Six consecutive failures, including the pauses between them, must take at most 45 s.
const (
	dialTimeout = 3 * time.Second
	callTimeout = 10 * time.Second
	// maxBody is the maximum length of a response body in bytes; a longer one is malformed.
	maxBody = 1 << 20
	// largeBody is the length in bytes above which only one response is decoded at a time: until its entries are
	// counted, a response of 1 MB can use more than a hundred times as much memory.
	largeBody = 16 << 10
	// maxHeader is the maximum length of each header about the requester, as in the backend.
	maxHeader = 100
)

// client calls backends.
type client struct {
	locate func(context.Context, *pluginv1.Target) (string, error)
	plain  *clients      // for http
	large  chan struct{} // semaphore for decoding large responses

	mu     sync.Mutex
	secure *clients // for https; nil before the first call
}

func newClient(locate func(context.Context, *pluginv1.Target) (string, error)) *client {
	plain, _ := newClients(networkState{}) // cannot fail without a certificate file
	return &client{locate: locate, plain: plain, large: make(chan struct{}, 1)}
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
// credentials must go only to the configured URL.
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

// remote checks and returns the URL in the target.
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

// request is one call. path may include a query; in is nil for a call without a body; out points to a struct, or is
// nil if the response has no body.
type request struct {
	target       *pluginv1.Target
	method, path string
	anonymous    bool // sends no credential
	unnamed      bool // sends the install id but no other headers about the requester
	in           any
	out          any
	statuses     map[int]string // error codes by status; the route uses no other statuses except 200
	longer       time.Duration  // additional time for the backend beyond callTimeout
}

// fetch makes one call and returns the decoded response.
func fetch[T any](ctx context.Context, c *client, r request) (answer T, err error) {
	r.out = &answer
	err = c.do(ctx, r)
	return answer, err
}

// do makes one call. On failure it returns a gRPC status with a Problem, or the caller's cancellation.
func (c *client) do(ctx context.Context, r request) error {
	base, err := c.locate(ctx, r.target)
	if err != nil {
		return err
	}
	req, err := build(ctx, strings.TrimRight(base, "/"), r)
	if err != nil {
		return err
	}
	use, err := c.clientsFor(base, r.target.GetNetwork())
	if err != nil {
		return err
	}
	caller := *use.http
	if r.longer > 0 {
		caller = *use.patient
		caller.Timeout += r.longer
	}
	resp, err := caller.Do(req)
	if err != nil {
		return transport(ctx, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	if err != nil {
		return transport(ctx, err)
	}
	if !r.succeeded(resp.StatusCode) {
		return refusal(resp, body, r.statuses)
	}
	if r.out == nil {
		return nil
	}
	if len(body) > maxBody {
		return malformed(resp.StatusCode, "its response is longer than 1 MB")
	}
	err = c.decode(ctx, body, r.out)
	switch {
	case ctx.Err() != nil:
		return transport(ctx, ctx.Err())
	case err != nil:
		return malformed(resp.StatusCode, err.Error())
	}
	return nil
}

// decode decodes a response. Only one large response is decoded at a time.
func (c *client) decode(ctx context.Context, body []byte, out any) error {
	if len(body) > largeBody {
		select {
		case c.large <- struct{}{}:
			defer func() { <-c.large }()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return decode(body, out)
}

// succeeded reports whether a status means success for this call.
func (r request) succeeded(status int) bool {
	switch status {
	case http.StatusOK:
		return true
	case http.StatusCreated, http.StatusAccepted:
		return r.statuses == nil
	case http.StatusNoContent:
		return r.out == nil
	}
	return false
}

func build(ctx context.Context, base string, r request) (*http.Request, error) {
	var body io.Reader
	if r.in != nil {
		b, isRaw := r.in.(json.RawMessage)
		if !isRaw { // json.Marshal would escape raw JSON for HTML, which could make it too long
			var err error
			if b, err = json.Marshal(r.in); err != nil {
				return nil, status.Error(codes.Internal, "encode request")
			}
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, r.method, base+r.path, body)
	if err != nil {
		return nil, status.Error(codes.Internal, "build request")
	}
	if r.in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "service/"+buildinfo.Version)
	switch {
	case r.unnamed:
		req.Header.Set(backendapi.HeaderInstallID, r.target.GetInstallId())
	case !r.anonymous:
		credential(req.Header, r.target)
	}
	return req, nil
}

// credential sets either the bearer token or the install id, never both, and the headers about the requester.
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

// decode parses exactly one JSON value. Its error does not quote the body, which may contain a secret.
func decode(body []byte, out any) error {
	if err := json.Unmarshal(body, out); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			return fmt.Errorf("field %q has the wrong type", printable(wrong.Field, 60))
		}
		return errors.New("it is not valid JSON")
	}
	if err := checkForms(out); err != nil {
		return err
	}
	if c, ok := out.(checked); ok {
		return c.check()
	}
	return nil
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
