package web

import (
	"context"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/assistant"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/connpage"
	"github.com/service-dev/service/backend/internal/credentials"
	"github.com/service-dev/service/backend/internal/gateway"
	"github.com/service-dev/service/backend/internal/grants"
	"github.com/service-dev/service/backend/internal/link"
	"github.com/service-dev/service/backend/internal/projects"
	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/glasses"
)

// These are the accounts and projects of the dashboard tests.
const (
	ada      = "ada@example.org"
	adaID    = "id-" + ada
	hello    = "com.example.hello"
	foreign  = "com.example.theirs"
	password = "correct horse battery"
)

var then = time.Date(2026, 11, 20, 9, 30, 0, 0, time.UTC)

// fakeDashboard implements every service of the dashboard for one account. Methods whose names occur in two services
// are on the small types below it.
type fakeDashboard struct {
	merging  error // the error that Merge returns
	mu       sync.Mutex
	projects []projects.Project
	keys     []projects.KeyInfo
	grants   map[string]grants.Grants
	usual    grants.Grants // the account's default
	sessions []sessions.Session
	live     map[string]sessions.Live
	shown    map[string]sessions.Memory
	reached  sessions.Milestones
	entries  []audit.Entry // oldest first
	links    []link.Link
	config   assistant.Config
	page     connpage.Page
	secrets  map[string]string // values by provider
	tested   string
	lost     bool // whether the key that encrypts the secrets is lost
	sealed   bool // whether an encryption key exists
	calls    []string
	credit   *fakeCredit
	models   []gateway.Availability
	servers  LocalServers // nil if none can be added
}

type (
	fakeProjects    struct{ *fakeDashboard }
	fakeGrants      struct{ *fakeDashboard }
	fakeAudit       struct{ *fakeDashboard }
	fakeAssistant   struct{ *fakeDashboard }
	fakeCredentials struct{ *fakeDashboard }
	fakePages       struct{ *fakeDashboard }
	fakeSessions    struct{ *fakeDashboard }
)

func newFakeDashboard() *fakeDashboard {
	h := &fakeDashboard{grants: map[string]grants.Grants{}, secrets: map[string]string{}, sealed: true,
		tested: credentials.TestOK, usual: grants.Default()}
	h.credit = newFakeCredit(h)
	h.projects = []projects.Project{
		{ID: hello, DisplayName: "Hello", Platforms: []string{"ios", "web"}, CreatedAt: then,
			LastActiveAt: then.Add(time.Hour), Keys: 1, OpenSessions: 2},
		{ID: "com.example.other", DisplayName: "Other", CreatedAt: then},
	}
	h.keys = []projects.KeyInfo{{ID: "key1", Name: "iOS release", Hint: "wxyz", Prefix: "spk_ab12", CreatedAt: then,
		By: "agent on maple"}}
	h.config = assistant.Config{Project: hello, Version: 3, RealtimeModel: "standard", Voice: "ember",
		MemoryModel: "compact", SessionMemory: true, UpdatedAt: then, UpdatedBy: "agent on maple"}
	h.page = connpage.Page{Project: hello, PageID: "cp_abc", Version: 2, UpdatedAt: then, UpdatedBy: "agent on maple",
		Title: "Hello", Theme: "auto", Accent: "#0b6b68", Capabilities: []string{"display"},
		Phrases: []connpage.Phrase{{Phrase: "next", Does: "shows the next card"}},
		Toggles: []connpage.Toggle{{ID: "loud", Label: "Louder", On: true}}}
	owner := sessions.Owner{AccountID: adaID, LinkID: "link1"}
	h.sessions = []sessions.Session{
		{ID: "ses_one", Owner: owner, Project: hello, Platform: "web", DeviceModel: "rayban_display", CreatedAt: then,
			LastSeq: 3},
		{ID: "ses_two", Owner: owner, Project: hello, Platform: "ios", DeviceModel: "rayban_meta", CreatedAt: then,
			LastSeq: 1},
		{ID: "ses_far", Owner: sessions.Owner{AccountID: "id-of-mallory"}, Project: foreign, DeviceModel: "even_g1"},
	}
	h.live = map[string]sessions.Live{"ses_one": {Apps: []glasses.AppInfo{{Name: "hello-glasses"}}, Pages: 1}}
	h.shown = map[string]sessions.Memory{"ses_one": {Display: glasses.Event{Type: glasses.TypeDisplayShow,
		Payload: []byte(homeTree)}}}
	h.links = []link.Link{
		{ID: "link1", AccountID: adaID, Requester: link.Requester{Host: "maple", OS: "Debian 12", Client: "claude-code 2.1",
			IP: "192.0.2.7"}, LinkedAt: then, UsedAt: then, LastUsedAt: then.Add(time.Hour)},
		{ID: "link2", AccountID: adaID, Requester: link.Requester{Host: "oldbox"}, LinkedAt: then,
			RevokedAt: then.Add(time.Hour)},
	}
	return h
}

func (h *fakeDashboard) dashboard() *Dashboard {
	return &Dashboard{Projects: fakeProjects{h}, Keys: fakeProjects{h}, Grants: fakeGrants{h}, Audit: fakeAudit{h},
		Assistant:   fakeAssistant{h},
		Credentials: fakeCredentials{h}, Pages: fakePages{h}, Links: h, Credit: h.credit,
		Models: fakeModels{h}, KeySources: h.credit, LocalServers: h.servers, Sessions: fakeSessions{h}}
}

// note adds an audit entry and records the call. The caller must hold mu.
func (h *fakeDashboard) note(by audit.Actor, action, project, summary string) *audit.Entry {
	h.calls = append(h.calls, strings.TrimSpace(action+" "+project))
	e := audit.New(then.Add(time.Duration(len(h.entries))*time.Minute), adaID, by, action, project, summary)
	if by.Kind == audit.KindAgent {
		e.ActorName = "maple · claude-code"
	}
	h.entries = append(h.entries, e)
	return &h.entries[len(h.entries)-1]
}

func (h *fakeDashboard) called() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.calls)
}

func (h *fakeDashboard) with(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
}

func (f fakeProjects) List(_ context.Context, account string) (list []projects.Project, _ error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if account != adaID {
		return nil, nil
	}
	return slices.Clone(f.projects), nil
}

func (f fakeProjects) Get(ctx context.Context, account, id string) (projects.Project, error) {
	if id == "com.example.alias" {
		id = hello
	}
	list, _ := f.List(ctx, account)
	for _, p := range list {
		if p.ID == id {
			return p, nil
		}
	}
	return projects.Project{}, projects.ErrNotFound
}

func (f fakeProjects) Update(_ context.Context, _, id, name string, platforms []string,
	by audit.Actor) (projects.Project, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(name) > 80 {
		return projects.Project{}, &projects.InvalidError{Message: "name must be 1 to 80 printable characters"}
	}
	f.projects[0].DisplayName, f.projects[0].Platforms = name, platforms
	f.note(by, "project.changed", id, "name: "+name)
	return f.projects[0], nil
}

func (f fakeProjects) Merge(_ context.Context, _, from, into string, by audit.Actor) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.merging != nil {
		return f.merging
	}
	f.note(by, "project.merged", into, from)
	return nil
}

func (f fakeProjects) Delete(_ context.Context, _, id string, by audit.Actor) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.projects = slices.DeleteFunc(f.projects, func(p projects.Project) bool { return p.ID == id })
	f.note(by, "project.deleted", id, "deleted")
	return nil
}

func (f fakeProjects) Keys(context.Context, string, string) ([]projects.KeyInfo, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.keys), nil
}

func (f fakeProjects) MintKey(_ context.Context, _, id, name string, by audit.Actor) (projects.Key, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if name == "" {
		return projects.Key{},
			&projects.InvalidError{Message: "name must be 1 to 100 printable characters: what the key is for"}
	}
	k := projects.Key{ID: fmt.Sprintf("key%d", len(f.keys)+1),
		Secret: fmt.Sprintf("spk_cd34-canary-%d-secret-7788", len(f.keys)), Hint: "7788", Prefix: "spk_cd34", CreatedAt: then}
	f.keys = append(f.keys, projects.KeyInfo{ID: k.ID, Name: name, Hint: k.Hint, Prefix: k.Prefix, CreatedAt: then,
		By: "you"})
	f.note(by, "key.minted", id, "key "+name)
	return k, nil
}

func (f fakeProjects) RotateKey(ctx context.Context, account, id, keyID string, by audit.Actor) (projects.Key, error) {
	if err := f.RevokeKey(ctx, account, id, keyID, by); err != nil {
		return projects.Key{}, err
	}
	return f.MintKey(ctx, account, id, "rotated", by)
}

func (f fakeProjects) RevokeKey(_ context.Context, _, id, keyID string, by audit.Actor) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.keys {
		if f.keys[i].ID == keyID {
			f.keys[i].RevokedAt = then.Add(2 * time.Hour)
			f.note(by, "key.revoked", id, "key "+f.keys[i].Name)
			return nil
		}
	}
	return projects.ErrNoKey
}

func (f fakeAudit) List(_ context.Context, account string, filter audit.Filter) (list []audit.Entry, _ error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range slices.Backward(f.entries) {
		noun, verb, _ := strings.Cut(e.Action, ".")
		if e.AccountID == account && (filter.Project == "" || e.Project == filter.Project) &&
			(filter.Before == "" || e.ID < filter.Before) && (filter.Actor == "" || e.Actor.Kind == filter.Actor) &&
			(filter.LinkID == "" || e.Actor.LinkID == filter.LinkID) && (!filter.ChangesOnly || verb != "read") &&
			(len(filter.Nouns) == 0 || slices.Contains(filter.Nouns, noun)) && !e.At.Before(filter.From) &&
			(filter.To.IsZero() || e.At.Before(filter.To)) {
			list = append(list, e)
		}
	}
	return list[:min(len(list), filter.Limit)], nil
}

func (f fakeAudit) Get(_ context.Context, account, id string) (audit.Entry, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.entries {
		if e.ID == id && e.AccountID == account {
			return e, nil
		}
	}
	return audit.Entry{}, audit.ErrNotFound
}

func (h *fakeDashboard) Links(_ context.Context, account string) ([]link.Link, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if account != adaID {
		return nil, nil
	}
	return slices.Clone(h.links), nil
}

func (h *fakeDashboard) RevokeLink(_ context.Context, account, id string, by audit.Actor) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.links {
		if h.links[i].ID == id && account == adaID {
			h.links[i].RevokedAt = then
			h.note(by, "link.revoked", "", "maple")
			return nil
		}
	}
	return link.ErrUnknown
}

func (h *fakeDashboard) RevokeAll(ctx context.Context, account string, by audit.Actor) (int, error) {
	return len(h.links), h.RevokeLink(ctx, account, "link1", by)
}

// dashboardSite serves a fake dashboard.
func dashboardSite(t *testing.T, h *fakeDashboard, change ...func(*Options)) (*httptest.Server, *fakeAccounts) {
	t.Helper()
	core := newFake()
	core.people[ada], core.people["eve@example.org"] = password, password
	return newSite(t, core, append([]func(*Options){func(o *Options) {
		o.Dashboard, o.HostedPages, o.SiteURL = h.dashboard(), fakePages{h}, "http://service.example.org"
	}}, change...)...), core
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
