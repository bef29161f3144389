package oidc

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/test/oidctest"
)

const callback = "http://localhost:1/signin/oidc/acme/callback"

func started(t *testing.T, now func() time.Time) (*oidctest.Provider, *Service) {
	t.Helper()
	return startedWith(t, "", now, slog.New(slog.DiscardHandler))
}

// startedWith starts a provider and a service with additional settings for the provider.
func startedWith(
	t *testing.T, settings string, now func() time.Time, log *slog.Logger,
) (*oidctest.Provider, *Service) {
	t.Helper()
	p, err := oidctest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	dir := t.TempDir()
	file := filepath.Join(dir, "providers.yaml")
	text := fmt.Sprintf("providers:\n- id: acme\n  name: Acme\n  issuer: %s\n  client_id: %s\n  client_secret_file: secret\n%s", p.Issuer, oidctest.ClientID, settings)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "secret"), []byte(oidctest.ClientSecret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Load(file, now, log)
	if err != nil {
		t.Fatal(err)
	}
	return p, s
}

// visit acts as the browser: it opens the provider's page and follows the redirect back.
func visit(t *testing.T, a Attempt) url.Values {
	t.Helper()
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Get(a.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	back, err := resp.Location()
	if err != nil {
		t.Fatalf("status %d: %v", resp.StatusCode, err)
	}
	if !strings.HasPrefix(back.String(), callback+"?") {
		t.Errorf("redirected to %s, want the callback", back)
	}
	return back.Query()
}

func begin(t *testing.T, s *Service) Attempt {
	t.Helper()
	a, err := s.Begin(t.Context(), "acme", callback)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestSignIn(t *testing.T) {
	p, s := started(t, nil)
	if got := s.Providers(); len(got) != 1 || got[0] != (Provider{"acme", "Acme"}) {
		t.Errorf("providers %v", got)
	}
	for _, person := range []oidctest.Person{
		{Subject: "1", Email: "Ada@example.org", EmailVerified: true}, {Subject: "2", Email: "bob@example.org"},
		{Subject: "3", EmailVerified: true},
	} {
		p.Be(person)
		a := begin(t, s)
		got, err := s.Finish(t.Context(), a, visit(t, a))
		want := Identity{Provider: "acme", Subject: person.Subject, Email: person.Email,
			EmailVerified: person.EmailVerified && person.Email != ""}
		if err != nil || got != want {
			t.Errorf("%+v: %+v, %v", person, got, err)
		}
	}
	if n := p.Calls("/.well-known/openid-configuration"); n != 1 {
		t.Errorf("discovery ran %d times, want 1", n)
	}
}

// Providers indicate in different ways whether an address belongs to the user.
func TestFinish_FindsWhetherTheEmailIsVerified(t *testing.T) {
	const trusted = "  trust_email: true\n"
	for name, c := range map[string]struct {
		settings       string
		person         oidctest.Person
		email          string
		verified, warn bool
	}{
		"no claim":                {"", oidctest.Person{NoClaim: true}, "ada@example.org", false, true},
		"no claim, trusted":       {trusted, oidctest.Person{NoClaim: true}, "ada@example.org", true, false},
		"false":                   {"", oidctest.Person{}, "ada@example.org", false, true},
		"false, trusted":          {trusted, oidctest.Person{}, "ada@example.org", true, false},
		"userinfo":                {"", oidctest.Person{InUserInfo: true, EmailVerified: true}, "ada@example.org", true, false},
		"userinfo, false":         {"", oidctest.Person{InUserInfo: true}, "ada@example.org", false, true},
		"userinfo, trusted":       {trusted, oidctest.Person{InUserInfo: true, NoClaim: true}, "ada@example.org", true, false},
		"userinfo of another one": {trusted, oidctest.Person{InUserInfo: true, EmailVerified: true, OtherSubject: true}, "", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			p, s := startedWith(t, c.settings, nil, slog.New(slog.NewTextHandler(&log, nil)))
			c.person.Subject, c.person.Email = "1", "ada@example.org"
			p.Be(c.person)
			for range 2 {
				a := begin(t, s)
				got, err := s.Finish(t.Context(), a, visit(t, a))
				if err != nil || got.Email != c.email || got.EmailVerified != c.verified {
					t.Errorf("got %+v, %v; want address %q, verified %t", got, err, c.email, c.verified)
				}
			}
			want := 0
			if c.warn {
				want = 1
			}
			for _, part := range []string{"provider=acme", "claim=email_verified", "setting=trust_email"} {
				if n := strings.Count(log.String(), part); n != want {
					t.Errorf("the log has %s %d times, want %d:\n%s", part, n, want, &log)
				}
			}
		})
	}
}

func TestFinish_SendsSecretAsProviderWants(t *testing.T) {
	for _, inBody := range []bool{false, true} {
		p, s := started(t, nil)
		p.SetFaults(oidctest.Faults{SecretInBody: inBody})
		a := begin(t, s)
		if _, err := s.Finish(t.Context(), a, visit(t, a)); err != nil || p.Calls("/token") != 1 {
			t.Errorf("secret in the body %v: got %v and %d token requests, want success and 1", inBody, err, p.Calls("/token"))
		}
		a = begin(t, s)
		answer := visit(t, a)
		a.Verifier = "other"
		if _, err := s.Finish(t.Context(), a, answer); !errors.Is(err, ErrInvalidAnswer) || p.Calls("/token") != 2 {
			t.Errorf("body %v, wrong verifier: got %v, %d requests; want ErrInvalidAnswer, 2", inBody, err, p.Calls("/token"))
		}
	}
}

func TestBegin_AttemptsDiffer(t *testing.T) {
	_, s := started(t, nil)
	one, two := begin(t, s), begin(t, s)
	if one.State == two.State || one.Nonce == two.Nonce || one.Verifier == two.Verifier {
		t.Error("two attempts share a state, nonce or verifier")
	}
	if strings.Contains(one.URL, one.Verifier) || strings.Contains(one.URL, oidctest.ClientSecret) {
		t.Error("the authorisation URL contains a secret")
	}
	answer := visit(t, one)
	for name, a := range map[string]Attempt{
		"another attempt": two,
		"no state":        {Provider: one.Provider, RedirectURL: one.RedirectURL},
		"verifier": {Provider: one.Provider, RedirectURL: one.RedirectURL, State: one.State, Nonce: one.Nonce,
			Verifier: two.Verifier},
	} {
		if _, err := s.Finish(t.Context(), a, answer); !errors.Is(err, ErrInvalidAnswer) {
			t.Errorf("%s: got %v, want ErrInvalidAnswer", name, err)
		}
	}
	again := begin(t, s)
	answer = visit(t, again)
	if _, err := s.Finish(t.Context(), again, answer); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Finish(t.Context(), again, answer); !errors.Is(err, ErrInvalidAnswer) {
		t.Errorf("a response used twice: got %v, want ErrInvalidAnswer", err)
	}
}

func TestFaults(t *testing.T) {
	p, s := started(t, nil)
	for name, c := range map[string]struct {
		faults oidctest.Faults
		want   error
	}{
		"denied":         {oidctest.Faults{Deny: true}, ErrDenied},
		"nonce":          {oidctest.Faults{Nonce: "other"}, ErrInvalidAnswer},
		"audience":       {oidctest.Faults{Audience: "other"}, ErrInvalidAnswer},
		"two audiences":  {oidctest.Faults{AlsoAudience: "other"}, ErrInvalidAnswer},
		"foreign party":  {oidctest.Faults{AlsoAudience: "other", Party: "other"}, ErrInvalidAnswer},
		"own party":      {oidctest.Faults{AlsoAudience: "other", Party: oidctest.ClientID}, nil},
		"issuer":         {oidctest.Faults{Issuer: "https://other.example"}, ErrInvalidAnswer},
		"expired":        {oidctest.Faults{Expired: true}, ErrInvalidAnswer},
		"unsigned":       {oidctest.Faults{Unsigned: true}, ErrInvalidAnswer},
		"foreign key":    {oidctest.Faults{ForeignKey: true}, ErrInvalidAnswer},
		"no id token":    {oidctest.Faults{NoIDToken: true}, ErrInvalidAnswer},
		"token endpoint": {oidctest.Faults{TokenStatus: 500}, ErrUnreachable},
		"none":           {oidctest.Faults{}, nil},
	} {
		p.SetFaults(c.faults)
		a := begin(t, s)
		_, err := s.Finish(t.Context(), a, visit(t, a))
		if !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
		if err != nil && (strings.Contains(err.Error(), "canary") || strings.Contains(err.Error(), a.State)) {
			t.Errorf("%s: the error contains a secret: %v", name, err)
		}
	}
}

func TestBegin_ProviderRecovers(t *testing.T) {
	now := time.Now()
	p, s := started(t, func() time.Time { return now })
	p.SetFaults(oidctest.Faults{DiscoveryDown: true})
	for range 3 {
		if _, err := s.Begin(t.Context(), "acme", callback); !errors.Is(err, ErrUnreachable) {
			t.Errorf("provider down: got %v, want ErrUnreachable", err)
		}
	}
	if n := p.Calls("/.well-known/openid-configuration"); n != 1 {
		t.Errorf("discovery ran %d times within %s, want 1", n, retryAfter)
	}
	p.SetFaults(oidctest.Faults{})
	now = now.Add(retryAfter)
	begin(t, s)
	if _, err := s.Begin(t.Context(), "other", callback); !errors.Is(err, ErrUnknownProvider) {
		t.Errorf("unknown provider: got %v, want ErrUnknownProvider", err)
	}
}

func TestProvidersFile(t *testing.T) {
	const good = "providers:\n- {id: acme, issuer: 'https://id.acme.example', client_id: c, client_secret: canary}\n"
	all, err := parse([]byte(good))
	if err != nil || len(all) != 1 || all[0].Name != "acme" || strings.Join(all[0].Scopes, " ") != "openid email" {
		t.Errorf("%+v, %v", all, err)
	}
	for name, text := range map[string]string{
		"unknown key":   strings.Replace(good, "client_id", "clientid", 1),
		"twice":         good + "- {id: acme, issuer: 'https://id.acme.example', client_id: c, client_secret: canary}\n",
		"plain http":    strings.Replace(good, "https://", "http://", 1),
		"no issuer":     strings.Replace(good, "https://id.acme.example", "acme", 1),
		"id":            strings.Replace(good, "id: acme", "id: A/..", 1),
		"no secret":     strings.Replace(good, ", client_secret: canary", "", 1),
		"two secrets":   strings.Replace(good, "}", ", client_secret_file: x}", 1),
		"scopes":        strings.Replace(good, "}", ", scopes: [email]}", 1),
		"two documents": good + "---\n" + good,
		"no list":       "providers: canary",
	} {
		if _, err := parse([]byte(text)); err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: got %v, want an error that quotes no value", name, err)
		}
	}
	if s, err := Load("", nil, nil); err != nil || len(s.Providers()) != 0 {
		t.Errorf("no file: got %v, want no providers and no error", err)
	}
	if _, err := Load(filepath.Join(t.TempDir(), "missing"), nil, nil); err == nil {
		t.Error("a missing file was accepted")
	}
}

func FuzzProvidersFile(f *testing.F) {
	f.Add([]byte("providers:\n- {id: acme, issuer: 'https://id.acme.example', client_id: c, client_secret: s}\n"))
	f.Add([]byte("providers: [{id: a, scopes: [openid]}]"))
	f.Add([]byte("---\n- &a [*a]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		all, err := parse(text)
		if err != nil {
			return
		}
		for _, p := range all {
			if p.ID == "" || p.Name == "" || p.ClientID == "" || len(p.Scopes) == 0 || checkIssuer(p.Issuer) != nil {
				t.Errorf("an invalid provider was accepted: %+v", p)
			}
		}
	})
}

func FuzzAnswer(f *testing.F) {
	f.Add("state=s&code=c")
	f.Add("state=s&error=access_denied")
	s := &Service{}
	f.Fuzz(func(t *testing.T, query string) {
		answer, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		if id, err := s.Finish(t.Context(), Attempt{Provider: "none", State: "s", Nonce: "n"}, answer); err == nil {
			t.Errorf("%q signed in as %+v, want an error", query, id)
		}
	})
}
