package api

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/analytics"
	"github.com/service-dev/service/backend/internal/assistant"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/connpage"
	"github.com/service-dev/service/backend/internal/credentials"
	"github.com/service-dev/service/backend/internal/credit"
	"github.com/service-dev/service/backend/internal/db"
	"github.com/service-dev/service/backend/internal/dbtest"
	"github.com/service-dev/service/backend/internal/gateway"
	"github.com/service-dev/service/backend/internal/grants"
	"github.com/service-dev/service/backend/internal/link"
	"github.com/service-dev/service/backend/internal/projects"
	"github.com/service-dev/service/backend/internal/secret"
	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/backend/internal/telemetry"
	"github.com/service-dev/service/backend/internal/usage"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/proto/backendapi"
)

const (
	installID = "inst_canary0123456789"
	site      = "https://glasses.example"
	ipHeader  = "X-Test-Ip"
)

// world serves the routes with the real services, a SQLite file and a clock controlled by the test.
type world struct {
	*testing.T
	mux   *http.ServeMux
	api   *API
	links *link.Service
	db    *db.DB
	ada   account.Account
	file  string
	log   *logs

	onLink func() // called whenever links reads the clock; nil does nothing

	grants   *grants.Service
	audit    *audit.Service
	projects *projects.Service

	mu sync.Mutex
	at time.Time
}

func newWorld(t *testing.T, change ...func(*Options)) *world {
	t.Helper()
	w := &world{T: t, file: dbtest.File(t), log: &logs{},
		at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	log := slog.New(slog.NewJSONHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	store, err := db.Open(t.Context(), w.file, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	hash := secret.NewHasher([]byte("a key of thirty-two bytes or more"))
	w.db = store
	w.links = link.New(link.Options{Store: link.NewStore(store), Hasher: hash, Settings: link.Settings{
		CodeTTL: 10 * time.Minute, PollInterval: 5 * time.Second, Grace: 30 * time.Second, UnusedAfter: time.Minute,
	}, Log: log, Now: func() time.Time {
		if w.onLink != nil {
			w.onLink()
		}
		return w.now()
	}})
	w.ada = w.person("0b0e7e1c-6f0a-4b1e-9a55-2f4f9ad6a001", "ada")
	live := &sessions.Service{Store: sessions.NewStore(store), Hasher: hash, Live: nobody{}, Now: w.now}
	o := Options{
		Links: w.links, Accounts: account.New(account.Options{Store: account.NewStore(store), Hasher: hash, Log: log}),
		SiteURL: site, BaseURL: "https://api.glasses.example", SupportContact: "help@example.org",
		Sessions: live, Scripts: &sessions.Assistants{Sessions: live, Store: sessions.NewStore(store), Live: nobody{}},
		ClientIP: func(r *http.Request) string { return r.Header.Get(ipHeader) }, CodesPerMinute: 1000,
		Ready: store.Ping, Log: log, Now: w.now,
	}
	w.records(hash, &o)
	for _, f := range change {
		f(&o)
	}
	w.mux = http.NewServeMux()
	w.api = New(o)
	w.api.Mount(w.mux)
	return w
}

// records sets up the services behind a project's settings, with encryption keys for credentials and a price for one
// model.
func (w *world) records(hash secret.Hasher, o *Options) {
	w.Helper()
	catalogue, err := assistant.LoadCatalogue("")
	if err != nil {
		w.Fatal(err)
	}
	providers, err := credentials.LoadProviders("")
	if err != nil {
		w.Fatal(err)
	}
	keys, err := credentials.ParseKeys(strings.Repeat("5a", 32))
	if err != nil {
		w.Fatal(err)
	}
	price, cheap := int64(60_000), int64(1_000)
	catalogue.RealtimeModels[0].Price, catalogue.MemoryModels[0].Price, catalogue.MemoryModels[1].Price = &price, &cheap,
		&price
	w.grants = &grants.Service{Store: grants.NewStore(w.db), Now: w.now}
	w.audit = &audit.Service{Store: audit.NewStore(w.db), Now: w.now}
	w.projects = &projects.Service{Store: projects.NewStore(w.db), Hasher: hash, Now: w.now}
	o.Grants, o.Audit, o.Projects = w.grants, w.audit, w.projects
	o.Assistant = &assistant.Service{Store: assistant.NewStore(w.db), Catalogue: catalogue, Now: w.now}
	o.Credentials = credentials.New(credentials.Options{Store: credentials.NewStore(w.db), Hasher: hash, Keys: keys,
		Providers: providers, Now: w.now})
	o.Analytics = analytics.New(analytics.Options{Store: analytics.NewStore(w.db), Hasher: hash, Quota: 1000, Now: w.now})
	o.Telemetry = telemetry.New(telemetry.Options{Store: telemetry.NewStore(w.db), Hasher: hash, Now: w.now})
	o.Pages = &connpage.Service{Store: connpage.NewStore(w.db), Now: w.now}
	ledger := credit.New(credit.Options{Store: credit.NewStore(w.db), Hasher: hash, Free: 2 * credit.USD, Now: w.now})
	o.GatewayUsage = &usage.Service{Ledger: ledger, Models: w.models(),
		KeySources: gateway.KeySources{Store: gateway.NewStore(w.db), Now: w.now}, Now: w.now}
}

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at
}

func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at = w.at.Add(d)
}

// nobody is a live session without any attached page.
type nobody struct{}

func (nobody) Attached(string) sessions.Live           { return sessions.Live{} }
func (nobody) WithApps(string) []string                { return nil }
func (nobody) GatewayChanged(context.Context, string)  {}
func (nobody) GatewaysChanged(context.Context, string) {}
func (nobody) LogAssistant(context.Context, string, string, any) {
}
func (nobody) Closed(string)                            {}
func (nobody) Switched(context.Context, string, string) {}

func (nobody) Watch(string, string) (<-chan struct{}, func(), error) { return nil, func() {}, nil }

func (nobody) Control(context.Context, string, string, json.RawMessage, []byte) (json.RawMessage, error) {
	return nil, sessions.ErrNoGlasses
}

// logs collects the log output.
type logs struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// answer is a response together with the request's name.
type answer struct {
	t      *testing.T
	what   string
	status int
	header http.Header
	body   []byte
}

// call sends one request. headers are pairs of name and value. The body is JSON unless a header says otherwise.
func (w *world) call(method, path, body string, headers ...string) answer {
	w.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	rec := httptest.NewRecorder()
	w.mux.ServeHTTP(rec, r)
	return answer{w.T, method + " " + path, rec.Code, rec.Header(), rec.Body.Bytes()}
}

func (w *world) issue(headers ...string) backendapi.DeviceCode {
	w.Helper()
	var code backendapi.DeviceCode
	w.call("POST", backendapi.PathDeviceCode, `{"scope":"account_full"}`, headers...).is(http.StatusOK).into(&code)
	return code
}

func (w *world) poll(deviceCode string) answer {
	w.Helper()
	body, err := json.Marshal(backendapi.TokenRequest{DeviceCode: deviceCode})
	if err != nil {
		w.Fatal(err)
	}
	return w.call("POST", backendapi.PathDeviceToken, string(body))
}

// cancel cancels a code, like a client that no longer needs it.
func (w *world) cancel(deviceCode string) answer {
	w.Helper()
	body, _ := json.Marshal(backendapi.TokenRequest{DeviceCode: deviceCode})
	return w.call("POST", backendapi.PathDeviceCancel, string(body))
}

func (w *world) person(id, name string) account.Account {
	w.Helper()
	a := account.Account{ID: id, Email: name + "@example.org", PasswordHash: "x", Active: true, PrivacyAccepted: w.at,
		CreatedAt: w.at}
	if err := account.NewStore(w.db).InsertAccount(w.Context(), a); err != nil {
		w.Fatal(err)
	}
	return a
}

func (w *world) approve(code backendapi.DeviceCode) { w.Helper(); w.approveAs(code, w.ada) }

func (w *world) approveAs(code backendapi.DeviceCode, who account.Account) {
	w.Helper()
	if err := w.links.Approve(w.Context(), code.UserCode, who.ID); err != nil {
		w.Fatal(err)
	}
}

// link links an install to Ada's account and returns its token.
func (w *world) link() string { w.Helper(); return w.linkOf(w.ada) }

func (w *world) linkOf(who account.Account) string {
	w.Helper()
	code := w.issue(backendapi.HeaderHost, "laptop")
	w.approveAs(code, who)
	var token backendapi.Token
	w.poll(code.DeviceCode).is(http.StatusOK).into(&token)
	return token.AuthToken
}

// operate changes the database directly, as an operator would.
func (w *world) operate(statement string, args ...any) {
	w.Helper()
	db, err := sql.Open("sqlite", "file:"+w.file+"?_pragma=busy_timeout(10000)")
	if err != nil {
		w.Fatal(err)
	}
	defer db.Close()
	result, err := db.ExecContext(w.Context(), statement, args...)
	if err != nil {
		w.Fatal(err)
	}
	if n, _ := result.RowsAffected(); n == 0 {
		w.Fatalf("statement %s changed no rows", statement)
	}
}

func (a answer) is(status int) answer {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("%s: got status %d, want %d: %s", a.what, a.status, status, a.body)
	}
	if got := a.header.Get("Cache-Control"); got != "no-store" {
		a.t.Errorf("%s: got Cache-Control %q, want no-store", a.what, got)
	}
	return a
}

func (a answer) into(v any) answer {
	a.t.Helper()
	d := json.NewDecoder(bytes.NewReader(a.body))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		a.t.Fatalf("%s: %v in %s", a.what, err, a.body)
	}
	return a
}

// problem checks that the response is a complete Problem with the code, and returns it.
func (a answer) problem(status int, code string) backendapi.Problem {
	a.t.Helper()
	var p backendapi.Problem
	a.is(status).into(&p)
	a.whole(p, status, code)
	return p
}

// authRequired checks that the response is a 401 with a new code, and returns it.
func (a answer) authRequired() backendapi.AuthRequired {
	a.t.Helper()
	var p backendapi.AuthRequired
	a.is(http.StatusUnauthorized).into(&p)
	a.whole(p.Problem, http.StatusUnauthorized, problem.CodeAuthRequired)
	if !p.Retryable || p.DeviceCode.DeviceCode == "" || p.UserCode == "" || p.ExpiresInSeconds != 600 ||
		p.PollIntervalSeconds != 5 ||
		p.VerificationURL != site+"/activate?code="+p.UserCode {
		a.t.Errorf("%s: got %+v, want a complete device code", a.what, p)
	}
	return p
}

func (a answer) whole(p backendapi.Problem, status int, code string) {
	a.t.Helper()
	if p.Status != status || p.Code != code || p.Type != "about:blank" || p.Title == "" || p.Detail == "" ||
		p.FixHint == "" {
		a.t.Errorf("%s: got problem %+v, want a complete one with code %s", a.what, p, code)
	}
	if got := a.header.Get("Content-Type"); got != "application/problem+json" {
		a.t.Errorf("%s: got Content-Type %q, want application/problem+json", a.what, got)
	}
}
