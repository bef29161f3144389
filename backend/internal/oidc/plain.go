package oidc

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"

	gooidc "github.com/coreos/go-oidc/v3/oidc"
)

// errPlain refuses an address where others could read the client's secret and codes, or forge keys.
var errPlain = errors.New("plain http to another machine")

// isPrivate reports whether nobody on the way can read what is sent: by https, or to this machine.
func isPrivate(u *url.URL) bool {
	ip := net.ParseIP(u.Hostname())
	own := u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
	return u.Hostname() != "" && (u.Scheme == "https" || u.Scheme == "http" && own)
}

// newClient makes the client for providers. It sends nothing by plain http to another machine, wherever a provider's
// description or a redirect leads, and follows no redirect of a form, which would carry the secret along.
func newClient(next http.RoundTripper) *http.Client {
	return &http.Client{Timeout: timeout, Transport: privateOnly{next}, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if via[0].Method != http.MethodGet || len(via) >= 5 {
			return http.ErrUseLastResponse
		}
		return nil
	}}
}

// privateOnly is a transport that refuses what is not private.
type privateOnly struct{ next http.RoundTripper }

func (t privateOnly) RoundTrip(r *http.Request) (*http.Response, error) {
	if !isPrivate(r.URL) {
		if r.Body != nil {
			_ = r.Body.Close() // the transport's duty also when it fails
		}
		return nil, errPlain
	}
	return t.next.RoundTrip(r)
}

// checkEndpoints refuses a provider whose description names an address that is not private; the browser goes to one of
// them, so the client's transport does not see all.
func checkEndpoints(found *gooidc.Provider) error {
	var says struct {
		Authorization string `json:"authorization_endpoint"`
		Token         string `json:"token_endpoint"`
		Keys          string `json:"jwks_uri"`
	}
	if err := found.Claims(&says); err != nil {
		return err
	}
	for name, address := range map[string]string{"authorization_endpoint": says.Authorization, "token_endpoint": says.Token, "jwks_uri": says.Keys} {
		if u, err := url.Parse(address); err != nil || !isPrivate(u) {
			return fmt.Errorf("%s: %w", name, errPlain)
		}
	}
	return nil
}
