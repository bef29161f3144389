package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/grants"
	"github.com/service-dev/service/backend/internal/projects"
	"github.com/service-dev/service/backend/internal/sessions"
)

var projectTests = map[string]func(*testing.T, *projectFixture){
	"a key is told once":       keyToldOnce,
	"fifty keys":               fiftyKeys,
	"keys of two at once":      keysAtOnce,
	"refused requests":         refusedKeys,
	"what a key opens":         keyOpens,
	"the use of a key":         keyUse,
	"rotate":                   rotate,
	"rotate twice at once":     rotateAtOnce,
	"revoke":                   revokeKey,
	"revoke while it is used":  revokeInUse,
	"revoked keys of long ago": oldKeys,
	"a project's beginnings":   beginnings,
	"too many projects":        tooManyProjects,
	"change":                   changeProject,
	"foreign and missing":      foreignProjects,
	"merge":                    merge,
	"merge sessions":           mergeSessions,
	"merge configs":            mergeConfigs,
	"chains of merges":         mergeChain,
	"merge against mint":       mergeAgainstMint,
	"merge both ways at once":  mergeBothWays,
	"delete":                   deleteProject,
	"delete against mint":      deleteAgainstMint,
	"a deleted project's name": deletedComesBack,
}

func TestProjects(t *testing.T) { testProjects(t, projectTests) }

func testProjects(t *testing.T, tests map[string]func(*testing.T, *projectFixture)) {
	eachEngine(t, tests, func(t *testing.T, db *database, test func(*testing.T, *projectFixture)) {
		live := newSessionFixture(t, db)
		db.exec("UPDATE links SET host = 'laptop', client = 'test'")
		test(t, &projectFixture{
			Service: &projects.Service{Store: db.projectsStore, Hasher: hash, Closed: live.live.Closed, Now: live.clock.now},
			grants:  &grants.Service{Store: db.grantsStore, Now: live.clock.now},
			audit:   &audit.Service{Store: db.auditStore, Now: live.clock.now},
			live:    live, clock: live.clock, store: db,
		})
	})
}

type projectFixture struct {
	*projects.Service
	store  *database
	grants *grants.Service
	audit  *audit.Service
	live   *sessionFixture
	clock  *clock
}

const app, other = "com.example.app", "com.example.other"

func (f *projectFixture) key(t *testing.T, project string) projects.Key {
	t.Helper()
	return must(f.MintKey(t.Context(), "ada", project, "laptop", audit.Agent("link-1")))(t)
}

func (f *projectFixture) get(t *testing.T, id string) projects.Project {
	t.Helper()
	p, err := f.Get(t.Context(), "ada", id)
	if err != nil {
		t.Fatalf("%s: %v", id, err)
	}
	return p
}

// actions returns the actions in ada's audit log, newest first.
func (f *projectFixture) actions(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, e := range f.entries(t, audit.Filter{}) {
		all = append(all, e.Action)
	}
	return all
}

func (f *projectFixture) entries(t *testing.T, filter audit.Filter) []audit.Entry {
	t.Helper()
	return must(f.audit.List(t.Context(), "ada", filter))(t)
}

func beginnings(t *testing.T, f *projectFixture) {
	if all, err := f.List(t.Context(), "ada"); err != nil || len(all) != 0 {
		t.Errorf("projects at first: got %v (error %v), want none", all, err)
	}
	f.live.mint(t, f.live.ada, sessions.Request{Project: "com.example.hello-world"})
	began := f.clock.now()
	f.clock.pass(time.Minute)
	f.key(t, app)
	all, err := f.List(t.Context(), "ada")
	if err != nil || len(all) != 2 {
		t.Fatalf("projects: got %v (error %v), want 2", all, err)
	}
	if p := all[0]; p.ID != app || p.DisplayName != "Example app" || p.Keys != 1 || p.OpenSessions != 0 ||
		!p.LastActiveAt.IsZero() || len(p.Platforms) != 0 {
		t.Errorf("the project with a key: got %+v, want one key, no sessions and no activity", p)
	}
	if p := all[1]; p.DisplayName != "Hello world" || p.Keys != 0 || p.OpenSessions != 1 || !p.CreatedAt.Equal(began) ||
		!p.LastActiveAt.Equal(began) {
		t.Errorf("the project with a session: got %+v, want one open session and no keys", p)
	}
	if got := f.actions(t); !slices.Equal(got, []string{"key.minted", "project.created", "project.created"}) {
		t.Errorf("audit actions: got %v, want key.minted after project.created twice", got)
	}
	if e := f.entries(t, audit.Filter{Project: "com.example.hello-world"}); len(e) != 1 ||
		e[0].Actor != audit.Agent("link-1") {
		t.Errorf("the audit entry of the project's creation: got %+v, want one by the agent", e)
	}
	f.clock.pass(sessions.Lifetime)
	if p := f.get(t, "com.example.hello-world"); p.OpenSessions != 0 || !p.LastActiveAt.Equal(began) {
		t.Errorf("after its session expired: got %+v, want no open session and the same activity", p)
	}
}

func tooManyProjects(t *testing.T, f *projectFixture) {
	for i := range projects.MaxProjects - 1 {
		f.store.exec("INSERT INTO projects (account_id, app_id, created_at) VALUES ('ada', $1, 1)",
			fmt.Sprintf("com.example.p%d", i))
	}
	made, _ := race(t, 10, isAny(projects.ErrTooManyProjects), func(i int) error {
		return errOf(f.MintKey(t.Context(), "ada", fmt.Sprint("com.example.n", i), "x", audit.Person()))
	})
	if made != 1 {
		t.Errorf("%d projects were created, want 1", made)
	}
	_, _, err := f.live.Mint(t.Context(), f.live.ada, sessions.Request{Project: "com.example.more"})
	want(t, "a session that needs one project too many", err, projects.ErrTooManyProjects)
	f.live.mint(t, f.live.ada, sessions.Request{Project: "com.example.p0"})
	f.live.mint(t, sessions.Owner{AccountID: "bob", LinkID: "link-3"}, sessions.Request{Project: "com.example.more"})
}

func changeProject(t *testing.T, f *projectFixture) {
	f.key(t, app)
	p, err := f.Update(t.Context(), "ada", app, "  Hällo  ", []string{"web", "ios", "web"}, audit.Person())
	if err != nil || p.DisplayName != "Hällo" || !slices.Equal(p.Platforms, []string{"ios", "web"}) || p.Keys != 1 {
		t.Errorf("after the change: got %+v (error %v), want the new name and platforms", p, err)
	}
	if _, err := f.Update(t.Context(), "ada", app, "Hällo", []string{"ios", "web"}, audit.Person()); err != nil {
		t.Error(err)
	}
	e := f.entries(t, audit.Filter{Limit: 1})[0]
	if e.Action != "project.changed" || e.Summary != "name: Example app -> Hällo; platforms: none -> ios, web" ||
		e.ActorName != "you" {
		t.Errorf("audit entry: got %+v, want the changed name and platforms", e)
	}
	if n := f.store.count("SELECT COUNT(*) FROM audit WHERE action = 'project.changed'"); n != 1 {
		t.Errorf("got %d audit entries for one change, want 1", n)
	}
	if p, err = f.Update(t.Context(), "ada", app, "", nil, audit.Person()); err != nil || p.DisplayName != "Example app" ||
		len(p.Platforms) != 0 {
		t.Errorf("after the reset to the default: got %+v (error %v), want the default name, no platforms", p, err)
	}
	for _, c := range []struct {
		name      string
		platforms []string
	}{{strings.Repeat("x", 81), nil}, {"a\nb", nil}, {"x\xff", nil}, {"x", []string{"glasses"}}, {"x", []string{""}}} {
		_, err := f.Update(t.Context(), "ada", app, c.name, c.platforms, audit.Person())
		if invalid := (*projects.InvalidError)(nil); !errors.As(err, &invalid) {
			t.Errorf("%+v: got %v, want an InvalidError", c, err)
		}
	}
}

// foreignProjects tests that another account's project is treated as missing everywhere.
func foreignProjects(t *testing.T, f *projectFixture) {
	k := f.key(t, app)
	f.key(t, other)
	fatal(t, f.Merge(t.Context(), "ada", other, app, audit.Person()))
	must(f.MintKey(t.Context(), "bob", "com.example.bobs", "x", audit.Person()))(t)
	for _, id := range []string{app, other, "com.example.missing", "nonsense", "", "com.example.bobs\x00"} {
		for what, call := range map[string]func() error{
			"get":        func() error { _, err := f.Get(t.Context(), "bob", id); return err },
			"resolve":    func() error { _, err := f.Resolve(t.Context(), "bob", id); return err },
			"update":     func() error { _, err := f.Update(t.Context(), "bob", id, "x", nil, audit.Person()); return err },
			"merge":      func() error { return f.Merge(t.Context(), "bob", id, "com.example.bobs", audit.Person()) },
			"merge into": func() error { return f.Merge(t.Context(), "bob", "com.example.bobs", id, audit.Person()) },
			"delete":     func() error { return f.Delete(t.Context(), "bob", id, audit.Person()) },
			"keys":       func() error { _, err := f.Keys(t.Context(), "bob", id); return err },
			"rotate":     func() error { _, err := f.RotateKey(t.Context(), "bob", id, k.ID, audit.Person()); return err },
			"revoke":     func() error { return f.RevokeKey(t.Context(), "bob", id, k.ID, audit.Person()) },
		} {
			want(t, what+" of "+id, call(), projects.ErrNotFound)
		}
	}
	want(t, "a foreign key", f.RevokeKey(t.Context(), "bob", "com.example.bobs", k.ID, audit.Person()), projects.ErrNoKey)
	want(t, "a foreign key", errOf(f.RotateKey(t.Context(), "bob", "com.example.bobs", k.ID, audit.Person())),
		projects.ErrNoKey)
	if _, err := f.Authenticate(t.Context(), k.Secret); err != nil {
		t.Errorf("ada's key: got error %v, want none", err)
	}
}
