package gateway

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/service-dev/service/backend/internal/gateway/wire"
	"github.com/service-dev/service/internal/problem"
)

// Reasons for cutting off a call.
var (
	errFirstByte = errors.New("the provider did not answer in time")
	errIdle      = errors.New("the provider stopped sending")
	errTotal     = errors.New("the call took too long")
	errLeft      = errors.New("the app disconnected")
)

// newClient returns a client that uses HTTP/1.1, so that each connection carries one call. It follows no redirects,
// because they could send the key to another server. allow checks each address before the client connects to it; nil
// allows all addresses.
func newClient(allow func(network, address string, _ syscall.RawConn) error) *http.Client {
	dialer := &net.Dialer{Timeout: 10 * time.Second, Control: allow}
	return &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := dialer.DialContext(ctx, network, address)
				if err != nil {
					return nil, err
				}
				return &countedConn{Conn: conn}, nil
			},
			TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: 30 * time.Second, MaxIdleConnsPerHost: 64,
			DisableCompression: true, MaxResponseHeaderBytes: 64 << 10,
			TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{},
		},
	}
}

// cloudSecrets are addresses in private networks where AWS and Google Cloud serve a machine's secrets.
var cloudSecrets = []netip.Addr{netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("fd20:ce::254")}

// localOnly allows addresses of this machine and of private networks. It is called after names have been resolved. It
// rejects link-local addresses, because clouds serve a machine's secrets there.
func localOnly(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	ip := at.Addr().Unmap().WithZone("")
	if err != nil || !ip.IsLoopback() && !ip.IsPrivate() || slices.Contains(cloudSecrets, ip) {
		return ErrNotLocal
	}
	return nil
}

// countedConn counts the bytes written, to determine whether a failed request can have reached the provider.
type countedConn struct {
	net.Conn
	written atomic.Int64
}

func (c *countedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.written.Add(int64(n))
	return n, err
}

// send posts the body. It repeats a failed request once if no byte was written; otherwise the call might be billed
// twice.
func (c *call) send(ctx context.Context) (*http.Response, error) {
	for attempt := 0; ; attempt++ {
		var conn *countedConn
		var before int64
		traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
			under := info.Conn
			if secured, ok := under.(*tls.Conn); ok {
				under = secured.NetConn()
			}
			if conn, _ = under.(*countedConn); conn != nil {
				before = conn.written.Load()
			}
		}})
		response, err := c.post(traced)
		c.sent = c.sent || err == nil || conn != nil && conn.written.Load() != before
		if c.sent || attempt > 0 || ctx.Err() != nil || c.body.all == nil {
			return response, err
		}
	}
}

func (c *call) post(ctx context.Context) (*http.Response, error) {
	p := c.model.Provider
	c.body.rest = c.body.all
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.base+c.model.API.Path(), c.body)
	if err != nil {
		return nil, err
	}
	r.ContentLength = int64(len(c.body.all))
	if c.model.API == wire.Messages {
		r.Header.Set("anthropic-version", "2023-06-01")
	}
	for name, value := range p.headers {
		r.Header.Set(name, value)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept-Encoding", "identity")
	r.Header.Set("User-Agent", "service-gateway")
	if k := c.key.reveal(); k != "" {
		r.Header.Set(p.header, p.prefix+k)
	}
	if p.added {
		r.Header.Set(ForwardedHeader, "1")
		return c.s.Servers.client.Do(r)
	}
	return c.s.client.Do(r)
}

// keptBody is the size in bytes up to which a body stays in memory while the call waits.
const keptBody = 64 << 10

// requestBody is the body of a request. A large body is released once it has been read to its end, when nearly all of
// it has been written to the provider. The transport would otherwise keep it until the end of the answer.
type requestBody struct{ all, rest []byte }

func (b *requestBody) Read(p []byte) (int, error) {
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	if len(b.rest) == 0 && len(b.all) > keptBody {
		b.all, b.rest = nil, nil
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (b *requestBody) Close() error { return nil }

const (
	maxErrorBody  = 64 << 10
	maxRetryAfter = time.Minute
	busyRetry     = 5 * time.Second
)

// refused converts a status other than 200 to a *Refusal. It includes the provider's response body, without the key,
// only if the body describes a mistake in the request.
func (c *call) refused(ctx context.Context, r *http.Response) *Refusal {
	body, _ := io.ReadAll(io.LimitReader(r.Body, maxErrorBody))
	p, status := c.model.Provider, r.StatusCode
	spent := status == http.StatusTooManyRequests && bytes.Contains(body, []byte("insufficient_quota"))
	switch {
	case c.refusesOwnKey(status, spent):
		return c.ownKeyRefused(ctx)
	case (status == http.StatusBadRequest || status == http.StatusRequestEntityTooLarge ||
		status == http.StatusUnprocessableEntity) && !spent:
		reason := cmp.Or(c.reason(wire.ErrorMessage(body)), "no reason given")
		return Refuse(problem.CodeProviderRefused, "the provider refused the request: "+reason)
	case status == http.StatusTooManyRequests && !spent, status >= 500 || status == http.StatusRequestTimeout:
		return c.busy(r.Header.Get("Retry-After"), wire.ErrorMessage(body))
	}
	if p.added {
		return Refuse(problem.CodeProviderUnreachable, "the local server "+p.ID+" refused the call: "+
			cmp.Or(c.reason(wire.ErrorMessage(body)), "its owner can check it on the project's gateway page"))
	}
	// The cause is the key, its budget, the model's name or a redirect. Only the operator can fix these.
	c.s.Log.Error("provider refused the operator's request", "provider", p.ID, "model", c.model.ID, "status", status)
	return Refuse(problem.CodeProviderUnavailable,
		"the model's provider refuses this backend: tell the backend's operator; its log has the reason").After(maxRetryAfter)
}

// busy returns the refusal of a call that the provider failed to answer. It includes the reason only for a local
// server: its owner can remove the cause, such as too little memory for the model.
func (c *call) busy(retryAfter, reason string) *Refusal {
	wait := busyRetry
	if n, err := strconv.Atoi(strings.TrimSpace(retryAfter)); err == nil && n >= 1 {
		wait = min(time.Duration(min(n, 3600))*time.Second, maxRetryAfter)
	}
	message := "the model's provider is busy: try again"
	if p := c.model.Provider; p.Local && reason != "" {
		message = "the local server " + p.ID + " failed: " + c.reason(reason)
	}
	return Refuse(problem.CodeProviderBusy, message).After(wait)
}

// reason returns a provider's message with the key removed.
func (c *call) reason(message string) string { return string(c.redact([]byte(message))) }

// redact removes the provider's key from data that the provider sent.
func (c *call) redact(p []byte) []byte {
	if k := c.key.reveal(); k != "" && bytes.Contains(p, []byte(k)) {
		return bytes.ReplaceAll(p, []byte(k), []byte("[removed]"))
	}
	return p
}

func isTimeout(err error) bool {
	return errors.Is(err, errFirstByte) || errors.Is(err, errTotal) || errors.Is(err, errIdle)
}

// AttestAgain is the next step of an install whose token is refused.
const AttestAgain = "attest again, or ask the project's owner if that is refused"

// unanswered returns the refusal of a request that got no response.
func (c *call) unanswered(err error) *Refusal {
	switch {
	case isTimeout(err):
		return Refuse(problem.CodeProviderTimeout, "the model's provider did not answer in time: try again").After(busyRetry)
	case errors.Is(err, errRevoked) && c.who.Session != "":
		return sessionOver()
	case errors.Is(err, errRevoked) && c.who.Install != "":
		return Refuse(problem.CodeInvalidKey,
			"the install was revoked, or what it attested with was removed: "+AttestAgain)
	case errors.Is(err, errRevoked):
		return Refuse(problem.CodeInvalidKey, "the project key was revoked: create another on the project's page")
	case errors.Is(err, errStopped):
		return Refuse(problem.CodeUnavailable, "the server is restarting: try again").After(time.Second)
	case errors.Is(err, errUncovered):
		return Refuse(problem.CodeUnavailable, "the credit reserved for this call was released: try again").After(time.Second)
	case c.model.Provider.Local:
		return Refuse(problem.CodeProviderUnreachable,
			"the local provider "+c.model.Provider.ID+" does not answer: start it").After(busyRetry)
	}
	c.s.Log.Warn("provider did not respond", "provider", c.model.Provider.ID, "model", c.model.ID)
	return Refuse(problem.CodeProviderUnavailable, "the model's provider does not answer: try again").After(busyRetry)
}
