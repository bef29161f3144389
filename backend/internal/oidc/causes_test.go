package oidc

import (
	"errors"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/packaging/oidctest"
)

// An operator finds in the log why no one can sign in: a wrong setting looks different from a provider that is down.
func TestErrorsNameTheCause(t *testing.T) {
	p, _ := started(t, nil)
	p.Spoil(oidctest.Faults{SecretInBody: true})
	at := func(issuer, secret string) *Service {
		t.Helper()
		file := filepath.Join(t.TempDir(), "providers.yaml")
		text := "providers:\n- {id: acme, issuer: '" + issuer + "', client_id: " + oidctest.ClientID + ", client_secret: " +
			secret + "}\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Load(file, time.Now, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	down, _ := started(t, nil)
	down.Spoil(oidctest.Faults{DiscoveryDown: true})
	for issuer, want := range map[string]string{
		p.Issuer + "/":          `calls itself "` + p.Issuer + `"`, // authentik's issuers end in a slash
		p.Issuer + "/elsewhere": "404",
		down.Issuer:             "503",
		"http://localhost:1":    "connection refused",
	} {
		s := at(issuer, oidctest.ClientSecret)
		for range 2 { // the second time, discovery does not run
			_, err := s.Begin(t.Context(), "acme", callback)
			if !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), want) {
				t.Errorf("issuer %s: got %v, want ErrUnreachable with %q", issuer, err, want)
			}
		}
	}
	for secret, want := range map[string]string{"canary-other": "invalid_client", oidctest.ClientSecret: ""} {
		s := at(p.Issuer, secret)
		a := begin(t, s)
		_, err := s.Finish(t.Context(), a, visit(t, a))
		if want == "" && err != nil || want != "" && (!errors.Is(err, ErrInvalidAnswer) ||
			!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "canary")) {
			t.Errorf("secret %s: got %v, want %q", secret, err, want)
		}
	}
	s := at(p.Issuer, oidctest.ClientSecret)
	for code, want := range map[string]string{"invalid_scope": ": invalid_scope", "access_denied": "", "a forged text": ""} {
		a := begin(t, s)
		_, err := s.Finish(t.Context(), a, url.Values{"state": {a.State}, "error": {code}})
		if !errors.Is(err, ErrDenied) || err.Error() != ErrDenied.Error()+want {
			t.Errorf("%s: got %v, want ErrDenied%s", code, err, want)
		}
	}
}
