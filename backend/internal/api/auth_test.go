package api

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/link"
	"github.com/service-dev/service/backend/internal/secret"
	"github.com/service-dev/service/internal/credential"
	"github.com/service-dev/service/proto/backendapi"
)

// accountRoutes are the routes that need a linked account.
var accountRoutes = []struct{ method, path, body string }{
	{"GET", backendapi.PathAccount, ""},
	{"DELETE", backendapi.PathAccountLink, ""},
	{"POST", backendapi.PathSessions, `{"project":"com.example.hello"}`},
	{"POST", backendapi.PathSessions, `not even JSON`},
	{"GET", backendapi.PathSessions, ""},
	{"GET", backendapi.PathSessions + "/ses_x", ""},
	{"DELETE", backendapi.PathSessions + "/ses_x", ""},
	{"POST", backendapi.PathSessions + "/ses_x/secrets", ""},
	{"POST", backendapi.PathSessions + "/ses_x" + backendapi.PathAssistantScript, ""},
	{"GET", backendapi.PathSessions + "/ses_x/events", ""},
	{"GET", backendapi.PathProjects, ""},
	{"GET", assistPath, ""},
	{"PATCH", assistPath, `{"version":0,"nonsense":true}`},
	{"GET", appPath + "/analytics?nonsense=true", ""},
	{"PATCH", pagePath, ""},
}

func TestHeadersOfAccountRoutes(t *testing.T) {
	w := newWorld(t)
	token := w.link()
	for _, tc := range []struct {
		name    string
		headers []string
	}{
		{"neither", nil},
		{"both", []string{backendapi.HeaderInstallID, installID, "Authorization", "Bearer " + token}},
		{"both, bad token", []string{backendapi.HeaderInstallID, installID, "Authorization", "Bearer x"}},
		{"both, bad install id", []string{backendapi.HeaderInstallID, "x", "Authorization", "Bearer " + token}},
		{"install id without prefix", []string{backendapi.HeaderInstallID, "canary0123456789"}},
		{"install id without suffix", []string{backendapi.HeaderInstallID, "inst_"}},
		{"install id with a space", []string{backendapi.HeaderInstallID, "inst_abc def"}},
		{"install id with a quote", []string{backendapi.HeaderInstallID, "inst_abc'def"}},
		{"install id too long", []string{backendapi.HeaderInstallID, "inst_" + strings.Repeat("a", 65)}},
		{"another scheme", []string{"Authorization", "Basic dXNlcjpwYXNz"}},
		{"token alone", []string{"Authorization", token}},
		{"scheme alone", []string{"Authorization", "Bearer"}},
		{"far too long", []string{"Authorization", "Bearer " + strings.Repeat("a", 600)}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, route := range accountRoutes {
				p := w.call(route.method, route.path, route.body, tc.headers...).problem(http.StatusBadRequest, "invalid_request")
				if strings.Contains(p.Detail+p.FixHint, token) {
					t.Error("the response repeats the token")
				}
			}
		})
	}
	if n, err := link.NewStore(w.db).PendingCodes(t.Context(), w.now()); err != nil || n != 0 {
		t.Errorf("%d codes were issued for malformed requests (error %v), want none", n, err)
	}
}

func TestWithoutALiveLink(t *testing.T) {
	const dead = `Bearer error="invalid_token"`
	for _, tc := range []struct {
		name      string
		headers   func(w *world) []string
		challenge string
		detail    string
	}{
		{"not linked", func(*world) []string { return []string{backendapi.HeaderInstallID, installID} }, "",
			"linked account"},
		{"revoked", func(w *world) []string {
			token := w.link()
			if n, err := w.links.RevokeAll(w.Context(), w.ada.ID, audit.Operator()); err != nil || n != 1 {
				w.Fatalf("revoked %d links (error %v), want 1", n, err)
			}
			return []string{"Authorization", "Bearer " + token}
		}, dead, "help@example.org"},
		{"account suspended", func(w *world) []string {
			token := w.link()
			w.operate("UPDATE accounts SET state = 'suspended'")
			return []string{"Authorization", "Bearer " + token}
		}, dead, "help@example.org"},
		{"legacy token past its date", func(w *world) []string {
			token := w.link()
			w.operate("UPDATE links SET expires_at = $1", w.now().Add(-time.Second).UnixMilli())
			return []string{"Authorization", "Bearer " + token}
		}, dead, "expired"},
		{"never minted", func(*world) []string { return []string{"Authorization", "Bearer " + secret.New(credential.Token)} },
			dead, "does not know"},
		{"nonsense", func(*world) []string { return []string{"Authorization", "Bearer nonsense"} }, dead, "does not know"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t)
			headers := tc.headers(w)
			fresh := map[string]bool{}
			for _, route := range accountRoutes {
				got := w.call(route.method, route.path, route.body, headers...)
				p := got.authRequired()
				if challenge := got.header.Get("WWW-Authenticate"); challenge != tc.challenge ||
					!strings.Contains(p.Detail, tc.detail) {
					t.Errorf("%s: got WWW-Authenticate %q, detail %q, want those in the table", got.what, challenge, p.Detail)
				}
				if fresh[p.DeviceCode.DeviceCode] {
					t.Errorf("%s: got a device code that was already issued, want a new one", got.what)
				}
				fresh[p.DeviceCode.DeviceCode] = true
				w.poll(p.DeviceCode.DeviceCode).is(http.StatusOK)
			}
		})
	}
}

func TestRevokedWithoutASupportContact(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.SupportContact = "" })
	token := w.link()
	if _, err := w.links.RevokeAll(t.Context(), w.ada.ID, audit.Operator()); err != nil {
		t.Fatal(err)
	}
	if p := w.call("GET", backendapi.PathAccount, "", "Authorization",
		"Bearer "+token).authRequired(); strings.Contains(p.Detail, ";") {
		t.Errorf("detail %q, want no contact", p.Detail)
	}
}

func TestAccount_OfToken(t *testing.T) {
	w := newWorld(t)
	token := w.link()
	ask := func() string {
		return string(w.call("GET", backendapi.PathAccount, "", "Authorization", "Bearer "+token).is(http.StatusOK).body)
	}
	want := `{"accountId":"` + w.ada.ID +
		`","tier":"free_account","linkedAt":"2026-01-02T03:04:05.000Z","expiresAt":null,"email":"` + w.ada.Email + `"}` + "\n"
	if got := ask(); got != want {
		t.Errorf("got %swant %s", got, want)
	}
	w.call("GET", backendapi.PathAccount, "", "Authorization", "bearer "+token).is(http.StatusOK) // the scheme is case-insensitive
	w.operate("UPDATE links SET expires_at = $1", w.now().Add(time.Hour).UnixMilli())
	if got := ask(); !strings.Contains(got, `"expiresAt":"2026-01-02T04:04:05.000Z"`) {
		t.Errorf("legacy token: got %s, want its expiry in expiresAt", got)
	}
}

// A device code from a 401 response works like one that the client requested.
func TestFromAuthRequiredToLinked(t *testing.T) {
	w := newWorld(t)
	p := w.call("POST", backendapi.PathSessions, `{"project":"com.example.hello"}`, backendapi.HeaderInstallID,
		installID).authRequired()
	w.approve(p.DeviceCode)
	var token backendapi.Token
	w.poll(p.DeviceCode.DeviceCode).is(http.StatusOK).into(&token)
	var s backendapi.CreatedSession
	w.call("POST", backendapi.PathSessions, `{"project":"com.example.hello"}`, "Authorization",
		"Bearer "+token.AuthToken).is(http.StatusCreated).into(&s)
	if !s.Created || s.SessionURL != site+"/s/"+s.SessionID {
		t.Errorf("got session %+v, want a new one with its URL", s)
	}
}
