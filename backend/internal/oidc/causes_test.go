package oidc

import (
	"errors"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	gooidc "github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/service-dev/service/test/oidctest"
)

// An operator finds in the log why no one can sign in: a wrong setting looks different from a provider that is down.
func TestErrorsNameTheCause(t *testing.T) {
	p, _ := started(t, nil)
	p.SetFaults(oidctest.Faults{SecretInBody: true})
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
	down.SetFaults(oidctest.Faults{DiscoveryDown: true})
	for issuer, want := range map[string]string{
		p.Issuer + "/":          `has the issuer "` + p.Issuer + `"`, // authentik's issuers end in a slash
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
	for code, want := range map[string]string{
		"invalid_scope": ": invalid_scope", "access_denied": "", "a forged text": "",
	} {
		a := begin(t, s)
		_, err := s.Finish(t.Context(), a, url.Values{"state": {a.State}, "error": {code}})
		if !errors.Is(err, ErrDenied) || err.Error() != ErrDenied.Error()+want {
			t.Errorf("%s: got %v, want ErrDenied%s", code, err, want)
		}
		if HasErrorCode(err) != (want != "") {
			t.Errorf("%s: HasErrorCode is %t", code, want == "")
		}
	}
}

// A provider, or a program impersonating it, can write only bounded text of a known form to the log.
func TestErrorsDoNotQuoteAnswers(t *testing.T) {
	const canary = "canary"
	mux := http.NewServeMux()
	mux.HandleFunc("/html/", func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "<p>"+canary) })
	mux.HandleFunc("/reason/", func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 503 "+canary+"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
	})
	mux.HandleFunc("/garbage/", func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, canary+" "+canary+"\r\n\r\n")
	})
	plain := httptest.NewServer(mux)
	defer plain.Close()
	private := httptest.NewUnstartedServer(mux)
	private.Config.ErrorLog = log.New(io.Discard, "", 0)
	private.StartTLS()
	defer private.Close()
	for issuer, want := range map[string]string{
		plain.URL + "/html":    ": the discovery document is not JSON",
		plain.URL + "/reason":  ": discovery answered with 503 Service Unavailable",
		plain.URL + "/garbage": "",
		private.URL:            ": tls: failed to verify certificate: x509: certificate signed by unknown authority",
	} {
		_, err := gooidc.NewProvider(gooidc.ClientContext(t.Context(), http.DefaultClient), issuer)
		if err == nil {
			t.Fatal("want an error")
		}
		if got := discoveryError(err); !errors.Is(got, ErrUnreachable) || got.Error() != ErrUnreachable.Error()+want {
			t.Errorf("%s: got %v, want ErrUnreachable%s", issuer, got, want)
		}
	}
	long := &net.OpError{Op: "dial", Err: errors.New(strings.Repeat("é", 1000))}
	if got := unreachable(long).Error(); len(got) > len(ErrUnreachable.Error())+2+maxCause || !utf8.ValidString(got) {
		t.Errorf("got %d bytes, want at most %d of a cause", len(got), maxCause)
	}
	refused := &oauth2.RetrieveError{Response: &http.Response{StatusCode: 502, Status: "502 " + canary}}
	if got := exchangeError(refused); !errors.Is(got, ErrUnreachable) || strings.Contains(got.Error(), canary) ||
		!strings.Contains(got.Error(), "502 Bad Gateway") {
		t.Errorf("got %v, want the status without its reason", got)
	}
}
