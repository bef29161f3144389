package oidc

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// leakyProvider publishes URLs chosen by the test, and records requests to hosts other than its own.
type leakyProvider struct {
	*httptest.Server
	mu     sync.Mutex
	leaked []string
	// endpoints are keyed by their names in the metadata; the redirect targets are keyed by the provider's own paths.
	endpoints, redirects map[string]string
}

func startLeaky(t *testing.T, endpoints, redirects map[string]string) (*leakyProvider, *Service) {
	t.Helper()
	p := &leakyProvider{endpoints: endpoints, redirects: redirects}
	p.Server = httptest.NewServer(http.HandlerFunc(p.answer))
	t.Cleanup(p.Close)
	// Every host name resolves to the test server, so that it records requests meant for another machine.
	everywhere := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, p.Listener.Addr().String())
	}}
	t.Cleanup(everywhere.CloseIdleConnections)
	s := &Service{http: newClient(everywhere), now: time.Now}
	s.all = []*provider{{settings: settings{ID: "acme", Name: "Acme", Issuer: p.URL, ClientID: "service",
		ClientSecret: "canary-secret", Scopes: []string{"openid"}}}}
	return p, s
}

func (p *leakyProvider) answer(w http.ResponseWriter, r *http.Request) {
	if "http://"+r.Host != p.URL {
		p.mu.Lock()
		p.leaked = append(p.leaked, r.Method+" "+r.Host+r.URL.Path)
		p.mu.Unlock()
	}
	if to := p.redirects[r.URL.Path]; to != "" {
		http.Redirect(w, r, to, http.StatusTemporaryRedirect)
		return
	}
	if !strings.HasPrefix(r.URL.Path, "/.well-known/") {
		http.Error(w, "no", http.StatusBadRequest)
		return
	}
	says := map[string]string{"authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token",
		"jwks_uri": p.URL + "/keys"}
	for name, address := range p.endpoints {
		says[name] = address
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"issuer":%q,"authorization_endpoint":%q,"token_endpoint":%q,"jwks_uri":%q,"token_endpoint_auth_methods_supported":["client_secret_post"]}`,
		p.URL, says["authorization_endpoint"], says["token_endpoint"], says["jwks_uri"])
}

// For all metadata and redirects that a provider returns, no secret or code leaves the machine over plain http.
func TestClient_RefusesPlainHTTP(t *testing.T) {
	const plain = "http://login.acme.example"
	for name, tc := range map[string]struct{ endpoints, redirects map[string]string }{
		"authorization endpoint": {map[string]string{"authorization_endpoint": plain + "/authorize"}, nil},
		"token endpoint":         {map[string]string{"token_endpoint": plain + "/token"}, nil},
		"keys":                   {map[string]string{"jwks_uri": plain + "/keys"}, nil},
		"no token endpoint":      {map[string]string{"token_endpoint": ""}, nil},
		"description redirected": {nil, map[string]string{"/.well-known/openid-configuration": plain +
			"/.well-known/openid-configuration"}},
		"token redirected": {nil, map[string]string{"/token": plain + "/token"}},
	} {
		p, s := startLeaky(t, tc.endpoints, tc.redirects)
		a, err := s.Begin(t.Context(), "acme", callback)
		if tokenOnly := strings.HasPrefix(name, "token redirected"); tokenOnly != (err == nil) {
			t.Errorf("%s: Begin: got error %v, want one unless only the token is redirected", name, err)
		}
		if err != nil && !errors.Is(err, ErrUnreachable) {
			t.Errorf("%s: got %v, want ErrUnreachable", name, err)
		}
		if err == nil {
			_, err = s.Finish(t.Context(), a, map[string][]string{"state": {a.State}, "code": {"c0de"}})
			if err == nil {
				t.Errorf("%s: signed in, want an error", name)
			}
		}
		p.mu.Lock()
		if len(p.leaked) > 0 {
			t.Errorf("%s: these were sent to another machine: %v", name, p.leaked)
		}
		p.mu.Unlock()
	}
}

// Redirects of a POST are not followed, not even over https: only the configured provider receives the secret.
func TestClient_FollowsNoRedirectOfForm(t *testing.T) {
	p, s := startLeaky(t, nil, nil)
	p.redirects = map[string]string{"/token": p.URL + "/elsewhere"}
	var asked []string
	next := s.http.Transport
	s.http.Transport = noting{next, &asked}
	a, err := s.Begin(t.Context(), "acme", callback)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Finish(t.Context(), a, map[string][]string{"state": {a.State}, "code": {"c0de"}}); err == nil {
		t.Error("signed in, want an error")
	}
	for _, path := range asked {
		if path == "/elsewhere" {
			t.Errorf("the secret was forwarded: %v", asked)
		}
	}
}

// noting records the requested paths.
type noting struct {
	http.RoundTripper
	asked *[]string
}

func (n noting) RoundTrip(r *http.Request) (*http.Response, error) {
	*n.asked = append(*n.asked, r.URL.Path)
	return n.RoundTripper.RoundTrip(r)
}

func TestNewClient_LimitsAnswers(t *testing.T) {
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	_, _ = z.Write(make([]byte, 10*maxAnswer))
	_ = z.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/small":
			_, _ = w.Write(make([]byte, maxAnswer))
		case "/large":
			_, _ = w.Write(make([]byte, maxAnswer+1))
		default:
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(bomb.Bytes())
		}
	}))
	defer server.Close()
	for path, want := range map[string]error{"/small": nil, "/large": errTooLong, "/bomb": errTooLong} {
		answer, err := newClient(http.DefaultTransport).Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if !errors.Is(err, want) || len(data) > maxAnswer {
			t.Errorf("%s: read %d bytes, %v; want %v", path, len(data), err, want)
		}
	}
	s := &Service{http: newClient(http.DefaultTransport), now: time.Now, all: []*provider{{settings: settings{ID: "acme",
		Issuer: server.URL, ClientID: "service", ClientSecret: "canary-secret"}}}}
	if _, err := s.Begin(t.Context(), "acme", "http://localhost:1/callback"); !errors.Is(err, ErrUnreachable) {
		t.Errorf("discovery with too long an answer: got %v, want ErrUnreachable", err)
	}
}
