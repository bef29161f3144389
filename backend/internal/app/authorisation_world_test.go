package app

import (
	"context"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/analytics"
	"github.com/service-dev/service/backend/internal/assistant"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/config"
	"github.com/service-dev/service/backend/internal/connpage"
	"github.com/service-dev/service/backend/internal/link"
	"github.com/service-dev/service/backend/internal/mail"
	"github.com/service-dev/service/backend/internal/secret"
	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/internal/credential"
)

const (
	siteURL = "https://service.example"
	// canary is part of every text that the owner entered. No response to anyone else may contain it.
	canary = "canary"
	// pastedKey is the value of a credential. No response may contain it.
	pastedKey = "sk-pasted-0123456789-0123456789"
)

// authWorld is a backend in which an owner has one resource of every kind and others try to access them.
type authWorld struct {
	t       *testing.T
	app     *App
	f       *features
	db      *database
	calls   int
	owner   *browser
	others  []*browser // a visitor, another account and a suspended account
	things  map[string]string
	missing map[string]string // well-formed names that do not exist, with the same keys as things
}

// browser is a visitor with its latest cookie and tokens.
type browser struct {
	name, account, email string
	cookie               *http.Cookie
	csrf                 string
}

func newAuthWorld(t *testing.T, where string) *authWorld {
	t.Helper()
	o := Options{InstanceID: "test", Embedded: true, Log: slog.New(slog.DiscardHandler), Config: config.Config{
		BaseURL: siteURL, SiteURL: siteURL, Database: where, HMACKey: []byte(strings.Repeat("k", 32)),
		CodeTTL: 10 * time.Minute, PollInterval: 5 * time.Second, Grace: 30 * time.Second, UnusedAfter: time.Minute,
		CodesPerMinute: 60, SessionsPerMinute: 100_000,
		CredentialsKeys: hex.EncodeToString([]byte(strings.Repeat("c", 32))), AnalyticsQuota: 1000,
		// No mail is sent, because the mail sender is not running.
		Mail: config.Mail{Host: "localhost", Port: 25, From: "service@service.example", TLS: "none"},
	}}
	o.Config.OIDCFile, o.Config.CredentialsFile = outside(t)
	a, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	site, err := url.Parse(siteURL)
	if err != nil {
		t.Fatal(err)
	}
	h := &authWorld{t: t, app: a, db: openDatabase(t, where)}
	// The test creates resources directly with these services, which use the backend's store.
	h.f, err = (&App{config: o.Config, log: o.Log, db: a.db}).features(o, site)
	h.must(err)
	h.fill()
	h.db.keep()
	return h
}

// outside starts the servers that the backend depends on: a sign-in provider, and an AI provider that accepts every
// key.
func outside(t *testing.T) (oidcFile, credentialsFile string) {
	t.Helper()
	var address string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/.well-known/") {
			fmt.Fprintf(w, `{"issuer":%q,"authorization_endpoint":%q,"token_endpoint":%q,"jwks_uri":%q}`, address, address+"/a",
				address+"/t", address+"/k")
		}
	}))
	t.Cleanup(server.Close)
	address = server.URL
	oidcFile, credentialsFile = filepath.Join(t.TempDir(), "oidc.yaml"), filepath.Join(t.TempDir(), "providers.yaml")
	for file, text := range map[string]string{
		oidcFile: "providers:\n  - {id: club, name: Club, issuer: '" + address +
			"', client_id: service, client_secret: shh}\n",
		credentialsFile: "providers:\n  - {id: openai, name: OpenAI, pattern: '^sk-', test: {url: '" + address +
			"/models', header: Authorization}}\n",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return oidcFile, credentialsFile
}

func (h *authWorld) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

// outbox keeps the last mail.
type outbox struct{ last mail.Message }

func (o *outbox) Queue(m mail.Message) error { o.last = m; return nil }
func (o *outbox) Enabled() bool              { return true }

func (h *authWorld) fill() {
	h.owner = h.signUp("the owner", canary+"@example.org")
	other, suspended := h.signUp("another account", "other@example.org"),
		h.signUp("a suspended account", "suspended@example.org")
	h.others = []*browser{h.signInAs(&browser{name: "a visitor"}, ""), other, suspended}
	h.things, h.missing = map[string]string{"pasted": pastedKey, "password": testPassword}, map[string]string{}
	second := h.signInAs(&browser{name: "the owner's second browser"}, h.owner.email)
	for _, b := range []*browser{h.owner, other, suspended} {
		h.link(b, "com.example.own") // every account has a project with this name
	}
	h.name("project", "com.example."+canary, "com.example.nobody")
	h.name("alias", "com.example.old"+canary, "com.example.never")
	h.link(h.owner, h.things["alias"])
	linkID := h.link(h.owner, h.things["project"])
	h.name("link", linkID, "")
	h.must(h.f.projects.Merge(h.t.Context(), h.owner.account, h.things["alias"], h.things["project"], audit.Person()))
	h.config(linkID)
	h.account(second)
	code, err := h.f.links.Start(h.t.Context(), link.Requester{Host: "maple"})
	h.must(err)
	h.things["code"] = code.UserCode
	h.db.exec("UPDATE accounts SET state = 'suspended' WHERE id = $1", suspended.account)
}

// name records a thing and a counterpart that does not exist. If missing is empty, the counterpart is the thing with
// its last character changed.
func (h *authWorld) name(name, thing, missing string) {
	h.t.Helper()
	if thing == "" {
		h.t.Fatalf("no value for %s", name)
	}
	if missing == "" {
		last := map[bool]string{true: "b", false: "a"}[strings.HasSuffix(thing, "a")]
		missing = thing[:len(thing)-1] + last
	}
	h.things[name], h.missing[name] = thing, missing
}

func (h *authWorld) signUp(name, email string) *browser {
	h.t.Helper()
	person, err := h.f.accounts.SignUp(h.t.Context(), email, testPassword)
	h.must(err)
	return h.signInAs(&browser{name: name, account: person.ID}, email)
}

var csrfOf = regexp.MustCompile(`name="csrf" value="([^"]+)"`)

// signInAs signs in on the sign-in page. If email is empty, it only opens the page, so that b is a visitor with a
// cookie.
func (h *authWorld) signInAs(b *browser, email string) *browser {
	h.t.Helper()
	h.visit(b, request{method: http.MethodGet, path: "/signin"})
	if email == "" {
		return b
	}
	form := url.Values{"email": {email}, "password": {testPassword}, "csrf": {b.csrf}}
	h.visit(b, request{method: http.MethodPost, path: "/signin", form: form, origin: siteURL})
	h.visit(b, request{method: http.MethodGet, path: "/account/settings"})
	if b.email = email; !strings.HasPrefix(b.cookie.Value, "s.") || b.csrf == "" {
		h.t.Fatalf("failed to sign in as %s", b.name)
	}
	return b
}

// visit sends a request and keeps the cookie and the token of the response.
func (h *authWorld) visit(b *browser, q request) {
	h.t.Helper()
	res, body := h.send(b, q)
	for _, c := range res.Cookies() {
		if strings.HasSuffix(c.Name, "service-test") {
			b.cookie = c
		}
	}
	if m := csrfOf.FindStringSubmatch(body); m != nil {
		b.csrf = m[1]
	}
}

// link links an install to the account and uses it to open a session of the project.
func (h *authWorld) link(b *browser, project string) (linkID string) {
	h.t.Helper()
	ctx := h.t.Context()
	who := link.Requester{Host: "maple"}
	if b == h.owner {
		who = link.Requester{Host: canary + "-host", OS: canary + "-os", Client: canary + "-client"}
	}
	code, err := h.f.links.Start(ctx, who)
	h.must(err)
	h.must(h.f.links.Approve(ctx, code.UserCode, b.account))
	poll, err := h.f.links.Poll(ctx, code.DeviceCode)
	h.must(err)
	known, err := h.f.links.Authenticate(ctx, poll.Token.AuthToken)
	h.must(err)
	s, _, err := h.f.sessions.Mint(ctx, sessions.Owner{AccountID: b.account, LinkID: known.LinkID},
		sessions.Request{Project: project})
	h.must(err)
	if b == h.owner {
		h.name("session", s.ID, "")
	}
	return known.LinkID
}

// config stores one setting of each kind in the owner's project.
func (h *authWorld) config(linkID string) {
	h.t.Helper()
	ctx, id, project, agent := h.t.Context(), h.owner.account, h.things["project"], audit.Agent(linkID)
	h.name("key", h.basics(project), "")
	h.name("twinKey", h.basics("com.example.own"), "")
	now, err := h.f.assistant.Get(ctx, id, project)
	h.must(err)
	voice := "harbor"
	_, after, err := h.f.assistant.Change(ctx, id, project, assistant.Change{Version: now.Version, Voice: &voice}, agent)
	h.must(err)
	h.things["assistantVersion"], h.things["sounds"] = fmt.Sprint(after.Version),
		map[bool]string{true: "on", false: "off"}[after.Sounds]
	h.name("entry", h.newest(), "")
	page, err := h.f.pages.Get(ctx, id, project)
	h.must(err)
	title := "Canary connects"
	_, changed, err := h.f.pages.Change(ctx, id, project, connpage.Change{Version: page.Version, Title: &title}, agent)
	h.must(err)
	h.name("page", changed.PageID, "")
	h.things["pageVersion"] = fmt.Sprint(changed.Version)
	h.name("pageEntry", h.newest(), "")
	h.must(h.f.audit.Read(ctx, id, project, "assistant.read", agent))
	paste, err := h.f.credentials.NewLink(ctx, id, project, "openai", agent)
	h.must(err)
	h.name("paste", paste.ID, secret.New(credential.Credential))
}

// Keys of Play Integrity, as form values.
const (
	playDecryption   = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA%3D"
	playVerification = "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEOzwuGphBTZNHqVjHjbALT7ZYqpUiWazKv0eQs3q3iifC8k/6o/BE%2BG" +
		"ja433iX39pvcJyoIPq9O4ReCVCQ1Msww%3D%3D"
)

// basics gives one of the owner's projects a name, a key, a credential and some usage.
func (h *authWorld) basics(project string) (keyID string) {
	h.t.Helper()
	ctx, id := h.t.Context(), h.owner.account
	_, err := h.f.projects.Update(ctx, id, project, "Canary bird", []string{"web"}, audit.Person())
	h.must(err)
	key, err := h.f.projects.MintKey(ctx, id, project, canary+" key", audit.Person())
	h.must(err)
	h.must(h.f.credentials.Set(ctx, id, project, "openai", pastedKey, "", audit.Person()))
	form, err := url.ParseQuery("decryption=" + playDecryption + "&verification=" + playVerification)
	h.must(err)
	_, err = h.f.installs.SetPlayKeys(ctx, id, project, form.Get("decryption"), form.Get("verification"), audit.Person())
	h.must(err)
	_, err = h.f.servers.Add(ctx, id, project, "ollama", "http://127.0.0.1:1/v1", "", audit.Person())
	h.must(err)
	h.db.exec(`INSERT INTO attest_installs (id, account_id, app_id, platform, key_hash, public_key, app, counter,
			environment, project_key, created_at, attested_at, expires_at)
		VALUES ($1, $2, $3, 'google', 'h', '', '`+canary+`', 0, 'production', $4, 1, 1, 1)`, "inst-"+project, id, project,
		key.ID)
	counted, err := h.f.analytics.Ingest(ctx, id, project, []analytics.Event{
		{ID: "00000001", Type: analytics.Custom, Name: canary + "_tap", At: time.Now(), InstallID: "install-1"}})
	h.must(err)
	if counted.Accepted != 1 {
		h.t.Fatalf("got %+v, want one accepted event", counted)
	}
	return key.ID
}

func (h *authWorld) newest() string {
	h.t.Helper()
	all, err := h.f.audit.List(h.t.Context(), h.owner.account, audit.Filter{Limit: 1})
	h.must(err)
	return all[0].ID
}

// account adds sign-in methods, a second browser and two mailed links to the owner's account.
func (h *authWorld) account(second *browser) {
	h.t.Helper()
	ctx, id := h.t.Context(), h.owner.account
	h.must(h.f.accounts.LinkIdentity(ctx, id, account.Identity{Provider: "club", Subject: "1", Email: canary +
		"@club.example"}, audit.Person()))
	h.db.exec(`INSERT INTO passkeys (id, account_id, credential_id, name, credential, sign_count, created_at) VALUES ($1, $2, 'AAAA', $3, '{}', 0, 1)`,
		"11111111-2222-4333-8444-555555555555", id, canary+" phone")
	h.name("passkey", "11111111-2222-4333-8444-555555555555", "")
	open, err := h.f.accounts.Sessions(ctx, id, strings.TrimPrefix(second.cookie.Value, "s."))
	h.must(err)
	for _, s := range open {
		if s.Current {
			h.name("browser", s.ID, "")
		}
	}
	post := &outbox{}
	h.f.accounts.Mail = post
	h.must(h.f.accounts.SendVerification(ctx, id))
	h.name("verify", tokenOf(post.last.Link), secret.New(credential.Mail))
	over, end := context.WithCancel(ctx)
	end()
	h.must(h.f.accounts.Serve(over)) // sends the queued mail
	h.must(h.f.accounts.RequestSignUp(ctx, "fresh@example.org", testPassword, "/account"))
	h.must(h.f.accounts.Serve(over))
	h.things["signup"] = tokenOf(post.last.Link)
	reset, err := h.f.accounts.ResetLink(ctx, h.owner.email, audit.Operator())
	h.must(err)
	h.name("reset", tokenOf(reset), secret.New(credential.Mail))
}

func tokenOf(address string) string { _, token, _ := strings.Cut(address, "?token="); return token }

// request is one request of a browser. origin is the origin of the page that sends it, or empty.
type request struct {
	method, path string
	form         url.Values
	origin       string
	cookies      []*http.Cookie // in addition to the browser's own cookies
	pattern      string         // the pattern of the route that must handle the request
	socket       bool           // the request upgrades to a WebSocket
}

// send sends each request from a new address, so that no rate limit applies. Other tests cover the limits.
func (h *authWorld) send(b *browser, q request) (*http.Response, string) {
	h.t.Helper()
	r := httptest.NewRequestWithContext(context.WithoutCancel(h.t.Context()), q.method, siteURL+q.path,
		strings.NewReader(q.form.Encode()))
	h.calls++
	r.RemoteAddr = fmt.Sprintf("10.0.%d.%d:4000", h.calls>>8, h.calls&255)
	if q.method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if q.origin != "" {
		r.Header.Set("Sec-Fetch-Site", map[bool]string{true: "same-origin", false: "cross-site"}[q.origin == siteURL])
		r.Header.Set("Origin", q.origin)
	}
	if q.socket {
		for name, value := range map[string]string{"Connection": "Upgrade", "Upgrade": "websocket",
			"Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="} {
			r.Header.Set(name, value)
		}
	}
	if b.cookie != nil {
		r.AddCookie(b.cookie)
	}
	for _, c := range q.cookies {
		r.AddCookie(c)
	}
	w := httptest.NewRecorder()
	r.Host = "localhost:" // an embedded backend, the only kind with local servers, rejects any other host
	h.app.Handler().ServeHTTP(w, r)
	if q.pattern != "" && r.Pattern != q.pattern {
		h.t.Errorf("%s %s was routed to %q, want %q", q.method, q.path, r.Pattern, q.pattern)
	}
	return w.Result(), w.Body.String()
}
