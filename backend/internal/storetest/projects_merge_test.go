package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/grants"
	"github.com/service-dev/service/backend/internal/projects"
	"github.com/service-dev/service/backend/internal/sessions"
)

func (f *projectFixture) merge(t *testing.T, from, into string) {
	t.Helper()
	if err := f.Merge(t.Context(), "ada", from, into, audit.Person()); err != nil {
		t.Fatalf("merge %s into %s: %v", from, into, err)
	}
}

// merge tests that the old ID and embedded keys continue to work everywhere.
func merge(t *testing.T, f *projectFixture) {
	old := f.key(t, other)
	began := f.clock.now()
	f.clock.pass(time.Minute)
	own := f.key(t, app)
	for id, platforms := range map[string][]string{other: {"ios"}, app: {"web"}} {
		must(f.Update(t.Context(), "ada", id, "Name of "+id, platforms, audit.Person()))(t)
	}
	f.merge(t, other, app)

	all, err := f.List(t.Context(), "ada")
	if err != nil || len(all) != 1 {
		t.Fatalf("got projects %v (error %v), want one", all, err)
	}
	if p := all[0]; p.ID != app || p.DisplayName != "Name of "+app || p.Keys != 2 || !slices.Equal(p.Platforms,
		[]string{"ios", "web"}) || !p.CreatedAt.Equal(began) {
		t.Errorf("the merged project: got %+v, want both keys, both platforms and the earlier time", p)
	}
	if p := f.get(t, other); p.ID != app {
		t.Errorf("the project by its old ID: got %+v, want the remaining project", p)
	}
	for _, k := range []projects.Key{old, own} {
		if owner, err := f.Authenticate(t.Context(), k.Secret); err != nil || owner.Project != app {
			t.Errorf("an embedded key: got %+v (error %v), want the remaining project", owner, err)
		}
	}
	if more := f.key(t, other); f.get(t, app).Keys != 3 {
		t.Errorf("the project does not count a key minted with the old ID: %+v", more)
	}
	if s, _ := f.live.mint(t, f.live.ada, sessions.Request{Project: other}); s.Project != app {
		t.Errorf("a session minted with the old ID belongs to %s, want the remaining project", s.Project)
	}
	noError(t, f.RevokeKey(t.Context(), "ada", other, old.ID, audit.Person()))
	for _, pair := range [][2]string{{app, app}, {other, app}, {app, other}} {
		want(t, fmt.Sprint(pair), f.Merge(t.Context(), "ada", pair[0], pair[1], audit.Person()), projects.ErrSameProject)
	}
	for _, e := range f.entries(t, audit.Filter{}) {
		if e.Project != app {
			t.Errorf("got entry %+v, want it in the remaining project", e)
		}
	}
	if got := f.actions(t); !slices.Contains(got, "project.merged") {
		t.Errorf("audit actions: got %v, want project.merged among them", got)
	}
}

// mergeSessions tests that open sessions stay open. If a mint could resume one of two sessions, the remaining
// project's session is the current one.
func mergeSessions(t *testing.T, f *projectFixture) {
	both, _ := f.live.mint(t, f.live.ada, sessions.Request{Project: other})
	onlyOld, _ := f.live.mint(t, f.live.ada, sessions.Request{Project: other, Platform: "ios"})
	kept, _ := f.live.mint(t, f.live.ada, sessions.Request{Project: app})
	f.merge(t, other, app)
	for _, id := range []string{both.ID, onlyOld.ID, kept.ID} {
		s, err := f.live.Get(t.Context(), "ada", id)
		if err != nil || s.Project != app || !s.Open(f.clock.now()) {
			t.Errorf("session: got %+v (error %v), want it open in the remaining project", s, err)
		}
	}
	if s, created := f.live.mint(t, f.live.ada, sessions.Request{Project: other}); created || s.ID != kept.ID {
		t.Errorf("on web the mint returned %s, created %v; want the remaining project's session", s.ID, created)
	}
	if s, created := f.live.mint(t, f.live.ada, sessions.Request{Project: app, Platform: "ios"}); created ||
		s.ID != onlyOld.ID {
		t.Errorf("on ios the mint returned %s, created %v; want the moved session", s.ID, created)
	}
	if p := f.get(t, app); p.OpenSessions != 3 {
		t.Errorf("%d open sessions, want 3", p.OpenSessions)
	}
}

// mergeConfigs tests that the remaining project's grants apply, and that changes to dropped configs cannot be undone.
func mergeConfigs(t *testing.T, f *projectFixture) {
	f.key(t, other)
	f.key(t, app)
	for id, level := range map[string]grants.Level{other: grants.ReadWrite, app: grants.Off} {
		g := grants.Default()
		g.Analytics = level
		fatal(t, f.grants.Set(t.Context(), "ada", id, g, true, audit.Person()))
	}
	for _, id := range []string{other, app} {
		f.store.exec(fmt.Sprintf(`
			INSERT INTO audit (id, account_id, at, actor, link_id, action, app_id, summary, before, after)
			VALUES ('%s-change', 'ada', 1, 'agent', 'link-1', 'assistant.changed', '%s', 'voice', '{}', '{}')`, id, id))
	}
	f.merge(t, other, app)
	if g, err := f.grants.Of(t.Context(), "ada", app); err != nil || g.Analytics != grants.Off {
		t.Errorf("grants: got %+v (error %v), want the remaining project's", g, err)
	}
	for id, undoable := range map[string]bool{other: false, app: true} {
		e, err := f.audit.Get(t.Context(), "ada", id+"-change")
		if err != nil || e.Project != app || e.Undoable() != undoable {
			t.Errorf("audit entry: got %+v (error %v), want it moved, and undoable only if its config remains", e, err)
		}
	}
}

func mergeChain(t *testing.T, f *projectFixture) {
	ids := []string{"com.example.a", "com.example.b", "com.example.c"}
	for _, id := range ids {
		f.key(t, id)
	}
	f.merge(t, ids[0], ids[1])
	f.merge(t, ids[1], ids[2])
	for _, id := range ids {
		if p := f.get(t, id); p.ID != ids[2] || p.Keys != 3 {
			t.Errorf("project %s: got %+v, want the last project with three keys", id, p)
		}
	}
	if n := f.store.count("SELECT COUNT(*) FROM projects"); n != 1 {
		t.Errorf("%d projects, want 1", n)
	}
}

// mergeAgainstMint tests that everything minted with the old ID during a merge ends up in the remaining project.
func mergeAgainstMint(t *testing.T, f *projectFixture) {
	for round := range 5 {
		from, into := fmt.Sprint("com.example.from", round), fmt.Sprint("com.example.into", round)
		f.key(t, from)
		f.key(t, into)
		secrets := make([]string, 4)
		ids := make([]string, 4)
		var wg sync.WaitGroup
		for i := range secrets {
			wg.Go(func() {
				k, err := f.MintKey(t.Context(), "ada", from, "x", audit.Person())
				if err != nil {
					t.Error(err)
				}
				secrets[i] = k.Secret
			})
			wg.Go(func() {
				s, _, err := f.live.Mint(t.Context(), f.live.ada, sessions.Request{Project: from, Fresh: true})
				if err != nil {
					t.Error(err)
				}
				ids[i] = s.ID
			})
		}
		wg.Go(func() {
			noError(t, f.Merge(t.Context(), "ada", from, into, audit.Person()))
		})
		wg.Wait()
		for i := range secrets {
			if owner, err := f.Authenticate(t.Context(), secrets[i]); err != nil || owner.Project != into {
				t.Errorf("key: got %+v (error %v), want it in the remaining project", owner, err)
			}
			if s, err := f.live.Get(t.Context(), "ada", ids[i]); err != nil || s.Project != into {
				t.Errorf("session: got %+v (error %v), want it in the remaining project", s, err)
			}
		}
		if p := f.get(t, from); p.ID != into || p.Keys != 6 || p.OpenSessions != 4 {
			t.Errorf("project: got %+v, want 6 keys and 4 open sessions in the remaining one", p)
		}
	}
}

func mergeBothWays(t *testing.T, f *projectFixture) {
	for round := range 5 {
		a, b := fmt.Sprint("com.example.a", round), fmt.Sprint("com.example.b", round)
		f.key(t, a)
		f.key(t, b)
		errs := make([]error, 2)
		var wg sync.WaitGroup
		wg.Go(func() { errs[0] = f.Merge(t.Context(), "ada", a, b, audit.Person()) })
		wg.Go(func() { errs[1] = f.Merge(t.Context(), "ada", b, a, audit.Person()) })
		wg.Wait()
		lost := 0
		for _, err := range errs {
			if err != nil {
				want(t, "the loser", err, projects.ErrSameProject)
				lost++
			}
		}
		if p := f.get(t, a); lost != 1 || p.Keys != 2 || p.ID != f.get(t, b).ID {
			t.Errorf("%d merges lost, want 1; project %+v", lost, p)
		}
	}
}

// deleteProject tests that everything that belongs to the project is deleted except its audit entries, and that its
// open sessions end.
func deleteProject(t *testing.T, f *projectFixture) {
	k := f.key(t, app)
	stays := f.key(t, "com.example.stays")
	f.key(t, other)
	f.merge(t, other, app)
	s, _ := f.live.mint(t, f.live.ada, sessions.Request{Project: app})
	closed, _ := f.live.mint(t, f.live.ada, sessions.Request{Project: app, Platform: "ios"})
	must(f.live.Close(t.Context(), "ada", closed.ID))(t)
	sst := must(f.live.MintSecret(t.Context(), "ada", s.ID))(t)
	g := grants.Default()
	g.Credentials = grants.Off
	fatal(t, f.grants.Set(t.Context(), "ada", app, g, true, audit.Person()))
	f.live.live.closed = nil
	want(t, "delete", f.Delete(t.Context(), "ada", other, audit.Person()), nil)
	for _, id := range []string{app, other} {
		want(t, id, errOf(f.Get(t.Context(), "ada", id)), projects.ErrNotFound)
		want(t, "delete again", f.Delete(t.Context(), "ada", id, audit.Person()), projects.ErrNotFound)
	}
	want(t, "its key", errOf(f.Authenticate(t.Context(), k.Secret)), projects.ErrUnknownKey)
	want(t, "its session", errOf(f.live.Get(t.Context(), "ada", s.ID)), sessions.ErrNotFound)
	want(t, "its session's secret", errOf(f.live.Open(t.Context(), s.ID, sst)), sessions.ErrBadSecret)
	if !slices.Equal(f.live.live.closed, []string{s.ID}) {
		t.Errorf("ended sessions: got %v, want the project's only session", f.live.live.closed)
	}
	for table, n := range map[string]int{"project_keys": 1, "project_grants": 0, "project_aliases": 0, "sessions": 0,
		"session_secrets": 0, "projects": 1} {
		if got := f.store.count("SELECT COUNT(*) FROM " + table); got != n {
			t.Errorf("%s has %d rows, want %d", table, got, n)
		}
	}
	if _, err := f.Authenticate(t.Context(), stays.Secret); err != nil {
		t.Errorf("another project's key no longer works: %v", err)
	}
	if got := f.actions(t); got[0] != "project.deleted" || !slices.Contains(got, "key.minted") {
		t.Errorf("audit actions: got %v, want project.deleted first and key.minted kept", got)
	}
}

// deleteAgainstMint tests that a concurrent mint either precedes the deletion and is deleted, or follows it and
// creates the project again.
func deleteAgainstMint(t *testing.T, f *projectFixture) {
	for range 5 {
		f.key(t, app)
		var wg sync.WaitGroup
		for range 6 {
			wg.Go(func() {
				if _, err := f.MintKey(t.Context(), "ada", app, "x", audit.Person()); err != nil {
					t.Error(err)
				}
			})
			wg.Go(func() {
				if _, _, err := f.live.Mint(t.Context(), f.live.ada, sessions.Request{Project: app}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Go(func() {
			noError(t, f.Delete(t.Context(), "ada", app, audit.Person()))
		})
		wg.Wait()
		if err := f.Delete(t.Context(), "ada", app, audit.Person()); err != nil && !errors.Is(err, projects.ErrNotFound) {
			t.Error(err)
		}
	}
}

func deletedComesBack(t *testing.T, f *projectFixture) {
	f.key(t, app)
	must(f.Update(t.Context(), "ada", app, "Former", []string{"ios"}, audit.Person()))(t)
	want(t, "delete", f.Delete(t.Context(), "ada", app, audit.Person()), nil)
	f.clock.pass(time.Hour)
	f.key(t, app)
	if p := f.get(t, app); strings.Contains(p.DisplayName, "Former") || len(p.Platforms) != 0 || p.Keys != 1 ||
		!p.CreatedAt.Equal(f.clock.now()) {
		t.Errorf("project: got %+v, want a new one with one key", p)
	}
}
