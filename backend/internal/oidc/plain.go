package oidc

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	gooidc "github.com/coreos/go-oidc/v3/oidc"

	"github.com/service-dev/service/internal/loopback"
)

// errPlain is returned for a plain http URL, because others on the network could read the client secret and codes,
// or forge keys.
var errPlain = errors.New("plain http to another machine")

// isPrivate reports whether requests to u cannot be read by others on the network: they use https or stay on this
// machine.
func isPrivate(u *url.URL) bool {
	own := loopback.IsHost(u.Hostname())
	return u.Hostname() != "" && (u.Scheme == "https" || u.Scheme == "http" && own)
}

// newClient returns the HTTP client for providers. It never uses plain http to another machine, even if a provider's
// metadata or a redirect requests it. It does not follow redirects of a POST, which would forward the client secret.
func newClient(next http.RoundTripper) *http.Client {
	return &http.Client{Timeout: timeout, Transport: privateOnly{next}, CheckRedirect: func(r *http.Request,
		via []*http.Request) error {
		if via[0].Method != http.MethodGet || len(via) >= 5 {
			return http.ErrUseLastResponse
		}
		return nil
	}}
}

// maxAnswer limits a provider's answer, in bytes after decompression.
const maxAnswer = 1 << 20

var errTooLong = fmt.Errorf("answer is longer than %d bytes", maxAnswer)

// limitedBody returns errTooLong once more than left bytes have been read.
type limitedBody struct {
	io.ReadCloser
	left int
}

func (b *limitedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left+1)])
	if n > b.left {
		return b.left, errTooLong
	}
	b.left -= n
	return n, err
}

// privateOnly is a transport that refuses URLs that are not private, and answers that are too long.
type privateOnly struct{ next http.RoundTripper }

func (t privateOnly) RoundTrip(r *http.Request) (*http.Response, error) {
	if !isPrivate(r.URL) {
		if r.Body != nil {
			_ = r.Body.Close() // a RoundTripper must close the body even if it fails
		}
		return nil, errPlain
	}
	answer, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	answer.Body = &limitedBody{answer.Body, maxAnswer}
	return answer, nil
}

// checkEndpoints rejects a provider whose metadata contains a URL that is not private. The client's transport cannot
// check them all, because the browser opens one of them.
func checkEndpoints(found *gooidc.Provider) error {
	var says struct {
		Authorization string `json:"authorization_endpoint"`
		Token         string `json:"token_endpoint"`
		Keys          string `json:"jwks_uri"`
		UserInfo      string `json:"userinfo_endpoint"` // optional
	}
	if err := found.Claims(&says); err != nil {
		return err
	}
	for name, address := range map[string]string{"authorization_endpoint": says.Authorization,
		"token_endpoint": says.Token, "jwks_uri": says.Keys, "userinfo_endpoint": cmp.Or(says.UserInfo, says.Token)} {
		if u, err := url.Parse(address); err != nil || !isPrivate(u) {
			return fmt.Errorf("%s: %w", name, errPlain)
		}
	}
	return nil
}
