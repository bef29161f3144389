//go:build unix

package app

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/config"
	"github.com/service-dev/service/internal/problem"
)

// Only a failure that the caller's variables could explain gets a different hint.
func TestExplain_KeepsHintsOfOtherFailures(t *testing.T) {
	store, err := config.Open(t.TempDir(), nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	withoutNetworkVariables(t)
	d := &daemon{config: store}
	remote := map[string]string{"HTTPS_PROXY": "http://p.test:1", "SSL_CERT_FILE": "/ca.pem"}
	for _, c := range []struct {
		name string
		env  map[string]string
		p    problem.Error
		want string
	}{
		{"no connection", remote, problem.Error{Retryable: true}, "https_proxy: 'http://p.test:1'"},
		{"certificate", remote, problem.Error{Untrusted: true}, "ca_file: '/ca.pem'"},
		{"forbidden by a sandbox, or by a proxy", remote, problem.Error{}, "own hint"},
		{"answer", remote, problem.Error{Retryable: true, HTTPStatus: 502}, "own hint"},
		{"proxy of a sandbox", map[string]string{"HTTPS_PROXY": "http://127.0.0.1:1"}, problem.Error{Retryable: true},
			"own hint"},
	} {
		p := c.p
		p.FixHint = "own hint"
		d.explain(caller.With(t.Context(), caller.Caller{Env: c.env}), "https://backend.test", &p)
		if !strings.Contains(p.FixHint, c.want) {
			t.Errorf("%s: got the hint %q, want %q", c.name, p.FixHint, c.want)
		}
	}
}

func TestCheckNetwork_NamesAnInvalidBackend(t *testing.T) {
	store, err := config.Open(t.TempDir(), nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	withoutNetworkVariables(t)
	d := &daemon{config: store}
	for address, want := range map[string]string{
		"ftp://backend.test": "not checked: ", "embedded": "the backend is on this machine",
		"https://backend.test": "no proxy",
	} {
		who := caller.Caller{Env: map[string]string{"SERVICE_BACKEND_URL": address}}
		if c := d.checkNetwork(caller.With(t.Context(), who), false); !strings.Contains(c.Detail, want) {
			t.Errorf("%s: got %+v, want %q", address, c, want)
		}
	}
}

func withoutNetworkVariables(t *testing.T) {
	t.Helper()
	for _, name := range []string{"https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR"} {
		t.Setenv(name, "")
	}
}
