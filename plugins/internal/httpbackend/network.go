package httpbackend

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/service-dev/service/internal/outbound"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/plugins/internal/serve"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

// clients holds the HTTP clients for one set of settings. patient serves calls that the backend holds open for a long
// time, so that they do not use up the connections of other calls.
type clients struct {
	state         networkState
	http, patient *http.Client
}

// networkState identifies settings and the content of their certificate file.
type networkState struct {
	outbound.Settings
	modified time.Time
	size     int64
}

func newClients(state networkState) (*clients, error) {
	c := &clients{state: state, http: newHTTP(32), patient: newHTTP(1024)}
	for _, client := range []*http.Client{c.http, c.patient} {
		if err := state.Apply(client.Transport.(*http.Transport)); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (c *clients) closeIdle() {
	c.http.CloseIdleConnections()
	c.patient.CloseIdleConnections()
}

// clientsFor returns the clients for a call to base. It replaces the https clients when the settings or the
// certificates change. The http clients call only this machine and depend on neither.
func (c *client) clientsFor(base string, n *pluginv1.Network) (*clients, error) {
	if !strings.HasPrefix(base, "https:") {
		return c.plain, nil
	}
	state := networkState{Settings: SettingsOf(n)}
	if state.CAFile != "" {
		info, err := os.Stat(state.CAFile)
		if err != nil {
			return nil, unusableNetwork(err)
		}
		state.modified, state.size = info.ModTime(), info.Size()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.secure != nil && c.secure.state == state {
		return c.secure, nil
	}
	secure, err := newClients(state)
	if err != nil {
		return nil, unusableNetwork(err)
	}
	if c.secure != nil {
		c.secure.closeIdle()
	}
	c.secure = secure
	return secure, nil
}

// SettingsOf converts the daemon's network message to settings.
func SettingsOf(n *pluginv1.Network) outbound.Settings {
	return outbound.Settings{HTTPSProxy: n.GetHttpsProxy(), NoProxy: n.GetNoProxy(), CAFile: n.GetCaFile()}
}

func unusableNetwork(err error) error {
	return serve.Refuse(codes.FailedPrecondition, &pluginv1.Problem{
		Code: problem.CodeBackendUnreachable, Message: "reach backend: " + printable(err.Error(), 300),
		FixHint: "Correct ca_file in config.yaml, or remove it.",
	})
}

// proxyRefusal is the response of a proxy that did not connect to the backend.
type proxyRefusal struct{ status int }

func (e *proxyRefusal) Error() string {
	return strings.TrimSpace(fmt.Sprintf("the proxy answered %d %s", e.status, http.StatusText(e.status)))
}

func checkProxyAnswer(_ context.Context, _ *url.URL, _ *http.Request, r *http.Response) error {
	if r.StatusCode == http.StatusOK {
		return nil
	}
	return &proxyRefusal{r.StatusCode}
}

// transport returns the Problem for a call without a complete response.
func transport(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return status.FromContextError(ctx.Err()).Err()
	}
	p := &pluginv1.Problem{
		Code:      problem.CodeBackendUnreachable,
		Message:   "reach backend: " + cause(err),
		Retryable: true,
		FixHint:   "Check the network and the backend address (SERVICE_BACKEND_URL), then try again.",
	}
	var refused *proxyRefusal
	var untrusted x509.UnknownAuthorityError
	switch {
	case errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES):
		p.Retryable = false
		p.FixHint = "Allow the connection in the sandbox in which the daemon was started, or run " +
			"`servicectl daemon restart` outside of it."
	case errors.As(err, &untrusted):
		p.Retryable, p.Untrusted = false, true
		p.FixHint = "If your network inspects HTTPS, set ca_file in config.yaml to the path of its root certificate (PEM)."
	case errors.As(err, &refused) && refused.status == http.StatusProxyAuthRequired:
		p.Retryable = false
		p.FixHint = "Put the user name and password of the proxy into https_proxy of config.yaml: " +
			"http://USER:PASSWORD@host:port."
	case errors.As(err, &refused):
		p.Retryable = refused.status >= http.StatusInternalServerError
		p.FixHint = "Ask whoever runs the proxy to allow the backend, or correct https_proxy or no_proxy in config.yaml."
	case isProxyFailure(err):
		p.FixHint = "Check the address of the proxy: https_proxy in config.yaml, otherwise HTTPS_PROXY of the daemon."
	}
	return serve.Refuse(codes.Unavailable, p)
}

// isProxyFailure reports whether the connection to the proxy failed or a SOCKS proxy refused it. Go calls a refusal
// by a SOCKS proxy "socks connect".
func isProxyFailure(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && (op.Op == "proxyconnect" || strings.HasPrefix(op.Op, "socks"))
}

// cause returns the innermost error, with the address of a failed connection but without the URL that *url.Error would
// quote.
func cause(err error) string {
	var op *net.OpError
	if isProxyFailure(err) && errors.As(err, &op) {
		return "connect to the proxy: " + cause(op.Err)
	}
	var timeout interface{ Timeout() bool }
	if errors.As(err, &timeout) && timeout.Timeout() {
		return "no answer in time"
	}
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return "the name " + printable(dns.Name, 100) + " cannot be resolved"
	}
	address := ""
	if errors.As(err, &op) && op.Op == "dial" && op.Addr != nil {
		address = printable(op.Addr.String(), 100) + ": "
	}
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return address + printable(err.Error(), 200)
		}
		err = inner
	}
}
