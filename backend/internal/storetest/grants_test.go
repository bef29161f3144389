package storetest

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/grants"
)

var grantTests = map[string]func(*testing.T, *projectFixture){
	"the default":        grantDefaults,
	"what is set":        grantsSet,
	"refused":            grantsRefused,
	"set by two at once": grantsAtOnce,
	"account's default":  grantDefaultOfAccount,
	"for every project":  grantsEverywhere,
	"levels stay own":    grantsStayOwn,
	"follow at once":     grantsFollowAtOnce,
}

func TestGrants(t *testing.T) { testProjects(t, grantTests) }

func (f *projectFixture) grantsOf(t *testing.T, account, project string) grants.Grants {
	t.Helper()
	return must(f.grants.Of(t.Context(), account, project))(t)
}

func grantDefaults(t *testing.T, f *projectFixture) {
	f.key(t, app)
	for _, project := range []string{app, "com.example.missing"} {
		if diff := cmp.Diff(grants.Default(), f.grantsOf(t, "ada", project)); diff != "" {
			t.Errorf("%s differs from the defaults: %s", project, diff)
		}
	}
	g := f.grantsOf(t, "ada", app)
	if g.Of(grants.Assistant, grants.Voice) != grants.ReadWrite || g.Of(grants.Credentials, "") != grants.ReadWrite ||
		g.Of(grants.Analytics, "") != grants.Read {
		t.Errorf("the defaults differ from the documented table: %+v", g)
	}
	// Setting the current values changes nothing.
	fatal(t, f.grants.Set(t.Context(), "ada", app, g, true, audit.Person()))
	if f.entries(t, audit.Filter{})[0].Action == "grants.changed" {
		t.Error("setting the current values wrote an audit entry")
	}
}

// grantsSet tests that the next read sees a change, and that only the changed levels are stored.
func grantsSet(t *testing.T, f *projectFixture) {
	f.key(t, app)
	f.key(t, other)
	must(f.MintKey(t.Context(), "bob", app, "x", audit.Person()))(t)
	g := grants.Default()
	g.Assistant[grants.Voice] = grants.Off
	g.Assistant[grants.Sounds] = grants.Read
	g.Analytics = grants.ReadWrite
	fatal(t, f.grants.Set(t.Context(), "ada", app, g, true, audit.Person()))
	if diff := cmp.Diff(g, f.grantsOf(t, "ada", app)); diff != "" {
		t.Error(diff)
	}
	if n := f.store.count("SELECT COUNT(*) FROM project_grants"); n != 3 {
		t.Errorf("%d rows are stored, want 3", n)
	}
	for _, of := range [][2]string{{"ada", other}, {"bob", app}} {
		if diff := cmp.Diff(grants.Default(), f.grantsOf(t, of[0], of[1])); diff != "" {
			t.Errorf("%v changed as well: %s", of, diff)
		}
	}
	e := f.entries(t, audit.Filter{Project: app})[0]
	if e.Action != "grants.changed" || e.Undoable() ||
		e.Summary != "assistant_config.voice: read_write -> off; "+
			"assistant_config.sounds: read_write -> read; analytics: read -> read_write" {
		t.Errorf("audit entry: got %+v, want the three changed grants", e)
	}
	fatal(t, f.grants.Follow(t.Context(), "ada", app, true, audit.Person()))
	if diff := cmp.Diff(grants.Default(), f.grantsOf(t, "ada", app)); diff != "" ||
		f.store.count("SELECT COUNT(*) FROM project_grants") != 0 {
		t.Error(diff)
	}
}

func grantsRefused(t *testing.T, f *projectFixture) {
	f.key(t, app)
	want(t, "a missing project", f.grants.Set(t.Context(), "ada", other, grants.Default(), true, audit.Person()),
		grants.ErrNoProject)
	want(t, "a foreign project that is to follow", f.grants.Follow(t.Context(), "bob", app, true, audit.Person()),
		grants.ErrNoProject)
	want(t, "a foreign project", f.grants.Set(t.Context(), "bob", app, grants.Default(), true, audit.Person()),
		grants.ErrNoProject)
	for name, spoil := range map[string]func(g *grants.Grants){
		"no level":       func(g *grants.Grants) { g.Credentials = "" },
		"another level":  func(g *grants.Grants) { g.Analytics = "write" },
		"a field's":      func(g *grants.Grants) { g.Assistant[grants.Voice] = "all" },
		"a field less":   func(g *grants.Grants) { delete(g.Assistant, grants.Voice) },
		"a field more":   func(g *grants.Grants) { g.Assistant["colour"] = grants.Read },
		"another's name": func(g *grants.Grants) { delete(g.Assistant, grants.Voice); g.Assistant["colour"] = grants.Read },
	} {
		g := grants.Default()
		g.Assistant[grants.Sounds] = grants.Off
		spoil(&g)
		err := f.grants.Set(t.Context(), "ada", app, g, true, audit.Person())
		if invalid := (*grants.InvalidError)(nil); !errors.As(err, &invalid) {
			t.Errorf("%s: got %v, want an InvalidError", name, err)
		}
	}
	if n := f.store.count("SELECT COUNT(*) FROM project_grants"); n != 0 {
		t.Errorf("%d rows of refused grants are stored, want none", n)
	}
}

// grantsAtOnce tests that one of two concurrent changes is stored completely.
func grantsAtOnce(t *testing.T, f *projectFixture) {
	f.key(t, app)
	off, read := grants.Default(), grants.Default()
	for _, field := range grants.Fields() {
		off.Assistant[field], read.Assistant[field] = grants.Off, grants.Read
	}
	race(t, 10, isAny(), func(i int) error {
		return f.grants.Set(t.Context(), "ada", app, []grants.Grants{off, read}[i%2], true, audit.Person())
	})
	if g := f.grantsOf(t, "ada", app); !cmp.Equal(g, off) && !cmp.Equal(g, read) {
		t.Errorf("the stored grants mix both changes: %+v", g)
	}
}
