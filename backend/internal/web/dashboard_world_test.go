package web

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/assistant"
	"github.com/service-dev/service/backend/internal/attest"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/connpage"
	"github.com/service-dev/service/backend/internal/credentials"
	"github.com/service-dev/service/backend/internal/credit"
	"github.com/service-dev/service/backend/internal/dbtest"
	"github.com/service-dev/service/backend/internal/gateway"
	"github.com/service-dev/service/backend/internal/grants"
	"github.com/service-dev/service/backend/internal/memory"
	"github.com/service-dev/service/backend/internal/projects"
	"github.com/service-dev/service/backend/internal/secret"
	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/glasses"
)

// These are the accounts and projects of the dashboard tests.
const (
	ada   = "ada@example.org"
	adaID = "id-" + ada
	// malloryID owns a project and a session that other accounts must not see.
	malloryID = "id-of-mallory"
	hello     = "com.example.hello"
	foreign   = "com.example.theirs"
	password  = "correct horse battery"
)

var then = time.Date(2026, 11, 20, 9, 30, 0, 0, time.UTC)

// dashboardWorld holds the services of the dashboard, in a database with ada and eve.
type dashboardWorld struct {
	*people
	projects  *projects.Service
	grants    *grants.Service
	audit     *audit.Service
	sources   gateway.KeySources
	assistant *assistant.Service
	pages     *connpage.Service
	memory    *memory.Service
	sessions  *sessions.Service
	live      map[string]sessions.Live // apps and pages attached to sessions
	shows     int                      // commands of apps so far
	// provider is the address at which the test plays the providers of credentials. They refuse keys if refuses is set.
	provider    string
	refuses     bool
	credentials *credentials.Service
	credit      *credit.Ledger
	gateway     *gateway.Service
	servers     *gateway.LocalServers // nil if none can be added
}

func newDashboardWorld(t testing.TB) *dashboardWorld {
	h := &dashboardWorld{people: newPeople(t)}
	h.frozen = then
	now := h.now
	provider := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		h.with(func() {
			if h.refuses {
				rw.WriteHeader(http.StatusUnauthorized)
			}
		})
	}))
	t.Cleanup(provider.Close)
	h.provider = provider.URL
	h.credentials = h.newCredentials(usualKey)
	h.projects = &projects.Service{Store: projects.NewStore(h.db), Hasher: secret.NewHasher(make([]byte, 32)), Now: now}
	h.grants = &grants.Service{Store: grants.NewStore(h.db), Now: now}
	h.audit = &audit.Service{Store: audit.NewStore(h.db), Now: now}
	h.sources = gateway.KeySources{Store: gateway.NewStore(h.db), Now: now}
	h.pages = &connpage.Service{Store: connpage.NewStore(h.db), Now: now}
	h.assistant = &assistant.Service{Store: assistant.NewStore(h.db), Catalogue: catalogue(), Now: now,
		TextModels: func(context.Context, string, string) ([]assistant.TextModel, string, error) {
			return textModels, "plain", nil
		}}
	h.credit = h.newLedger()
	h.gateway = gateway.New(gateway.Options{Now: now})
	h.add(ada)
	h.add("eve@example.org")
	h.exec(`INSERT INTO links (id, account_id, token_hash, host, os, client, ip, linked_at, used_at, last_used_at,
			revoked_at)
		VALUES ('link1', $1, 'x', 'maple', 'Debian 12', 'claude-code 2.1', '192.0.2.7', $2, $2, $3, NULL),
			('link2', $1, 'y', 'oldbox', '', '', '', $2, NULL, NULL, $3)`,
		adaID, then.UnixMilli(), then.Add(time.Hour).UnixMilli())
	h.addProject(hello, "Hello", then.Add(time.Hour))
	h.addProject("com.example.other", "Other", time.Time{})
	h.exec("UPDATE projects SET platforms = 'ios,web' WHERE app_id = $1", hello)
	h.exec("INSERT INTO project_aliases VALUES ($1, 'com.example.alias', $2, 1)", adaID, hello)
	h.exec(`UPDATE project_keys SET id = 'key1', name = 'iOS release', hint = 'wxyz', prefix = 'spk_ab12', actor = 'agent',
		link_id = 'link1'`)
	h.exec(`INSERT INTO assistant_configs (account_id, app_id, version, realtime_model, voice, memory_model,
			session_memory, sounds, updated_at, updated_by, updated_link)
		VALUES ($1, $2, 3, 'standard', 'ember', 'compact', 1, 0, $3, 'agent', 'link1')`, adaID, hello, then.UnixMilli())
	h.exec(`INSERT INTO connection_pages (account_id, app_id, page_id, version, config, updated_at, updated_by,
			updated_link)
		VALUES ($1, $2, $3, 2, $4, $5, 'agent', 'link1')`, adaID, hello, hostedID, `{"title":"Hello","theme":"auto",
		"accent":"#0b6b68","capabilities":["display"],"phrases":[{"phrase":"next","does":"shows the next card"}],
		"toggles":[{"id":"loud","label":"Louder","on":true}]}`, then.UnixMilli())
	h.memory = &memory.Service{Store: memory.NewStore(h.db), Hasher: secret.NewHasher(make([]byte, 32)),
		Sealer: h.credentials, Now: now}
	h.sessions = &sessions.Service{Store: sessions.NewStore(h.db), Hasher: secret.NewHasher(make([]byte, 32)),
		Live: attached{h}, Now: now}
	dbtest.AddAccount(t, h.db, malloryID)
	dbtest.AddProject(t, h.db, malloryID, foreign)
	h.addSession("ses_one", "rayban_display", homeTree, 0)
	h.addSession("ses_two", "rayban_meta", "", time.Minute)
	h.addSessionOf(malloryID, foreign, "ses_far", "even_g1", 0)
	h.exec("UPDATE sessions SET platform = 'ios' WHERE id = 'ses_two'")
	h.live = map[string]sessions.Live{"ses_one": {Apps: []glasses.AppInfo{{Name: "hello-glasses"}}, Pages: 1}}
	return h
}

func (h *dashboardWorld) dashboard() *Dashboard {
	return &Dashboard{Projects: h.projects, Grants: h.grants, Audit: h.audit,
		Assistant:   h.assistant,
		Credentials: h.credentials, Pages: h.pages, Credit: h.credit,
		Models: h.gateway, KeySources: h.sources, LocalServers: h.servers, Sessions: h.sessions, Memory: h.memory,
		Installs: &attest.Service{Store: attest.NewStore(h.db), Hasher: secret.NewHasher(make([]byte, 32)),
			Credentials: h.credentials, Now: func() time.Time { return then }}}
}

// addProject adds a project of ada. If used is not zero, the project has a key that was used then.
func (h *dashboardWorld) addProject(id, name string, used time.Time) {
	h.t.Helper()
	h.exec("INSERT INTO projects (account_id, app_id, display_name, created_at) VALUES ($1, $2, $3, $4)", adaID, id, name,
		then.UnixMilli())
	if !used.IsZero() {
		h.exec(`INSERT INTO project_keys (id, hash, account_id, app_id, name, hint, created_at, last_used_at)
			VALUES ($1, $1, $2, $1, 'k', 'h', $3, $4)`, id, adaID, then.UnixMilli(), used.UnixMilli())
	}
}

// levels returns ada's default levels and the projects with their own levels.
func (h *dashboardWorld) levels() (grants.Grants, map[string]grants.Exception) {
	h.t.Helper()
	usual, exceptions, err := h.grants.All(context.Background(), adaID)
	if err != nil {
		h.t.Fatal(err)
	}
	return usual, exceptions
}

// setLevels gives a project of ada its own levels.
func (h *dashboardWorld) setLevels(project string, g grants.Grants) {
	h.t.Helper()
	if err := h.grants.Set(context.Background(), adaID, project, g, true, audit.Person()); err != nil {
		h.t.Fatal(err)
	}
}

// config returns the settings of hello's assistant.
func (h *dashboardWorld) config() assistant.Config {
	h.t.Helper()
	c, err := h.assistant.Get(context.Background(), adaID, hello)
	if err != nil {
		h.t.Fatal(err)
	}
	return c
}

// page returns the connection page of hello.
func (h *dashboardWorld) page() connpage.Page {
	h.t.Helper()
	p, err := h.pages.Get(context.Background(), adaID, hello)
	if err != nil {
		h.t.Fatal(err)
	}
	return p
}

// setTitle makes an agent change the title of hello's connection page, and returns the new version.
func (h *dashboardWorld) setTitle(title string) int64 {
	h.t.Helper()
	_, after, err := h.pages.Change(context.Background(), adaID, hello,
		connpage.Change{Version: h.page().Version, Title: &title}, agentActor)
	if err != nil {
		h.t.Fatal(err)
	}
	return after.Version
}

// paysWith sets what pays for the calls of hello.
func (h *dashboardWorld) paysWith(source string) {
	h.t.Helper()
	if err := h.sources.SetKeySource(context.Background(), adaID, hello, source, audit.Person()); err != nil {
		h.t.Fatal(err)
	}
}

// note adds an audit entry of ada and returns its ID. values are the JSON before and after the change.
func (h *dashboardWorld) note(by audit.Actor, action, project, summary string, values ...string) (id string) {
	e := audit.New(then, adaID, by, action, project, summary)
	for i, value := range values {
		*[]*json.RawMessage{&e.Before, &e.After}[i] = json.RawMessage(value)
	}
	if err := h.audit.Store.InsertAudit(context.Background(), e); err != nil {
		h.t.Error(err)
	}
	return e.ID
}

// entries lists ada's audit entries, except those of sign-ins, oldest first.
func (h *dashboardWorld) entries() []audit.Entry {
	h.t.Helper()
	all, err := h.audit.Store.AuditEntries(context.Background(), adaID, audit.Filter{Limit: 1000})
	if err != nil {
		h.t.Fatal(err)
	}
	slices.Reverse(all)
	return slices.DeleteFunc(all, func(e audit.Entry) bool { return e.Action == "account.signed_in" })
}

// called lists what ada's audit log records, as actions and projects.
func (h *dashboardWorld) called() (calls []string) {
	h.t.Helper()
	for _, e := range h.entries() {
		calls = append(calls, strings.TrimSpace(e.Action+" "+e.Project))
	}
	return calls
}

// dashboardSite serves the dashboard.
func dashboardSite(t *testing.T, h *dashboardWorld, change ...func(*Options)) *httptest.Server {
	t.Helper()
	return newSite(t, h.people, append([]func(*Options){func(o *Options) {
		o.Dashboard, o.SiteURL = h.dashboard(), "http://service.example.org"
	}}, change...)...)
}

// signedIn returns a browser that is signed in with this address.
func signedIn(t *testing.T, site *httptest.Server, email string) *visitor {
	t.Helper()
	v := visit(t, site).get("/signin")
	form := v.tokens()
	form.Set("email", email)
	form.Set("password", password)
	return v.post("/signin", form).want(303)
}
