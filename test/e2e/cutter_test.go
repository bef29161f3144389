//go:build unix

package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"
)

// cutter is a proxy between a daemon and its backend. It closes the connection instead of forwarding a response that
// contains a token.
type cutter struct {
	url string
}

// newCutter starts a cutter that calls onCode with the verification URL of each device code.
func newCutter(t *testing.T, backend string, onCode func(verificationURL string)) *cutter {
	t.Helper()
	target, err := url.Parse(backend)
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ModifyResponse: func(resp *http.Response) error {
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				return err
			}
			resp.Body = io.NopCloser(bytes.NewReader(body))
			var answer struct{ AuthToken, VerificationURL string }
			if json.Unmarshal(body, &answer) != nil {
				return nil
			}
			if answer.AuthToken != "" {
				panic(http.ErrAbortHandler)
			}
			if answer.VerificationURL != "" {
				onCode(answer.VerificationURL)
			}
			return nil
		},
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	c.url = server.URL
	return c
}
