package storetest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/grants"
)

// grantDefaultOfAccount tests that a project follows the account's default except where it has its own level, and that
// a project without any, including a later one, follows the default completely.
func grantDefaultOfAccount(t *testing.T, f *projectFixture) {
	f.key(t, app)
	own := grants.Default()
	own.Analytics = grants.Off
	own.Assistant[grants.Voice] = grants.Read
	fatal(t, f.grants.Set(t.Context(), "ada", app, own, true, audit.Person()))
	usual := grants.Default()
	usual.Credentials = grants.Read
	usual.Assistant[grants.Voice] = grants.Read
	fatal(t, f.grants.SetDefault(t.Context(), "ada", usual, false, true, audit.Person()))
	want := grants.Default()
	want.Analytics, want.Credentials, want.Assistant[grants.Voice] = grants.Off, grants.Read, grants.Read
	if diff := cmp.Diff(want, f.grantsOf(t, "ada", app)); diff != "" {
		t.Errorf("the project with levels of its own: %s", diff)
	}
	f.key(t, other)
	if diff := cmp.Diff(usual, f.grantsOf(t, "ada", other)); diff != "" {
		t.Errorf("a new project: %s", diff)
	}
	if diff := cmp.Diff(grants.Default(), f.grantsOf(t, "bob", app)); diff != "" {
		t.Errorf("another account: %s", diff)
	}
	e := f.entries(t, audit.Filter{Nouns: []string{"grants"}})[0]
	if e.Action != "grants.default_changed" || e.Project != "" ||
		e.Summary != "assistant_config.voice: read_write -> read; credentials: read_write -> read" {
		t.Errorf("audit entry: got %+v, want the two changed defaults", e)
	}
	gotUsual, exceptions, err := f.grants.All(t.Context(), "ada")
	fatal(t, err)
	wantException := grants.Exception{Grants: want, Own: []grants.Row{
		{Project: app, Capability: grants.Assistant, Field: grants.Voice, Level: grants.Read},
		{Project: app, Capability: grants.Analytics, Level: grants.Off},
	}}
	if diff := cmp.Diff(map[string]grants.Exception{app: wantException}, exceptions); diff != "" ||
		gotUsual.Credentials != grants.Read {
		t.Errorf("the exceptions: %s", diff)
	}
	// The built-in level can be an exception from the account's default.
	builtIn := f.grantsOf(t, "ada", app)
	builtIn.Credentials = grants.ReadWrite
	fatal(t, f.grants.Set(t.Context(), "ada", app, builtIn, true, audit.Person()))
	if g := f.grantsOf(t, "ada", app); g.Credentials != grants.ReadWrite {
		t.Errorf("credentials: got %s, want the project's own read_write", g.Credentials)
	}
	fatal(t, f.grants.Follow(t.Context(), "ada", app, true, audit.Person()))
	if _, exceptions, err := f.grants.All(t.Context(), "ada"); err != nil || len(exceptions) != 0 {
		t.Errorf("after following the default: got exceptions %v (error %v), want none", exceptions, err)
	}
}

// grantsStayOwn tests that a project keeps the levels that were set for it when the default becomes the same and then
// changes again, and that the activity of every project mentions a change of its access.
func grantsStayOwn(t *testing.T, f *projectFixture) {
	f.key(t, app)
	f.key(t, other)
	summaries := func(project string) (all []string) {
		for _, e := range f.entries(t, audit.Filter{Nouns: []string{"grants"}, Project: project}) {
			all = append(all, e.Summary)
		}
		return all
	}
	strict := grants.Default()
	strict.Assistant[grants.Voice], strict.Analytics = grants.Off, grants.Off
	fatal(t, f.grants.Set(t.Context(), "ada", app, strict, true, audit.Person()))
	for _, usual := range []grants.Grants{strict, grants.Default()} {
		f.clock.pass(time.Second)
		fatal(t, f.grants.SetDefault(t.Context(), "ada", usual, false, true, audit.Person()))
		if diff := cmp.Diff(strict, f.grantsOf(t, "ada", app)); diff != "" {
			t.Errorf("the project's own levels changed with the default: %s", diff)
		}
	}
	if got := summaries(app); len(got) != 1 {
		t.Errorf("the project whose access did not change has the entries %q, want only that of its own change", got)
	}
	want := []string{"assistant_config.voice: off -> read_write; analytics: off -> read",
		"assistant_config.voice: read_write -> off; analytics: read -> off"}
	if diff := cmp.Diff(want, summaries(other)); diff != "" {
		t.Errorf("the entries of the project that follows the default: %s", diff)
	}
	// A level that the user sets back to the default's level is still the project's own.
	fatal(t, f.grants.Set(t.Context(), "ada", app, grants.Default(), true, audit.Person()))
	fatal(t, f.grants.SetDefault(t.Context(), "ada", strict, false, true, audit.Person()))
	if diff := cmp.Diff(grants.Default(), f.grantsOf(t, "ada", app)); diff != "" {
		t.Errorf("the levels that were set back followed the default: %s", diff)
	}
	f.clock.pass(time.Second)
	fatal(t, f.grants.Follow(t.Context(), "ada", app, true, audit.Person()))
	if got := summaries(app)[0]; got != want[1] || !cmp.Equal(strict, f.grantsOf(t, "ada", app)) {
		t.Errorf("following the default: got the entry %q and %+v", got, f.grantsOf(t, "ada", app))
	}
}

// grantsFollowAtOnce tests that a project follows the default completely, even if the default changes at the same time.
func grantsFollowAtOnce(t *testing.T, f *projectFixture) {
	f.key(t, app)
	off := grants.Default()
	off.Credentials, off.Analytics = grants.Off, grants.Off
	fatal(t, f.grants.Set(t.Context(), "ada", app, off, true, audit.Person()))
	race(t, 10, isAny(), func(i int) error {
		if i%2 == 0 {
			return f.grants.Follow(t.Context(), "ada", app, true, audit.Person())
		}
		return f.grants.SetDefault(t.Context(), "ada", []grants.Grants{off, grants.Default()}[i/2%2], false, true, audit.Person())
	})
	if n := f.store.count("SELECT COUNT(*) FROM project_grants"); n != 0 {
		t.Errorf("%d own levels are left, want none", n)
	}
}

// grantsEverywhere tests that the default replaces the levels of every project, each with its audit entry.
func grantsEverywhere(t *testing.T, f *projectFixture) {
	f.key(t, app)
	f.key(t, other)
	must(f.MintKey(t.Context(), "bob", app, "x", audit.Person()))(t)
	open := grants.Default()
	open.Analytics = grants.ReadWrite
	for _, account := range []string{"ada", "bob"} {
		fatal(t, f.grants.Set(t.Context(), account, app, open, true, audit.Person()))
	}
	shut := grants.Grants{Assistant: map[string]grants.Level{}, Credentials: grants.Off, Analytics: grants.Off}
	for _, field := range grants.Fields() {
		shut.Assistant[field] = grants.Off
	}
	fatal(t, f.grants.SetDefault(t.Context(), "ada", shut, true, true, audit.Person()))
	for _, project := range []string{app, other, "com.example.later"} {
		if diff := cmp.Diff(shut, f.grantsOf(t, "ada", project)); diff != "" {
			t.Errorf("%s: %s", project, diff)
		}
	}
	if g := f.grantsOf(t, "bob", app); g.Analytics != grants.ReadWrite {
		t.Errorf("bob's project: analytics is %s, want it unchanged", g.Analytics)
	}
	if n := f.store.count("SELECT COUNT(*) FROM project_grants WHERE account_id = 'ada'"); n != 0 {
		t.Errorf("%d levels of projects are stored, want none", n)
	}
	got := map[string]string{}
	for _, e := range f.entries(t, audit.Filter{Nouns: []string{"grants"}})[:3] {
		got[e.Project] = e.Action
	}
	if diff := cmp.Diff(map[string]string{app: "grants.changed", other: "grants.changed",
		"": "grants.default_changed"}, got); diff != "" {
		t.Errorf("audit entries: %s", diff)
	}
	fatal(t, f.grants.Set(t.Context(), "ada", app, open, true, audit.Person()))
	fatal(t, f.grants.Follow(t.Context(), "ada", "", true, audit.Person()))
	if diff := cmp.Diff(shut, f.grantsOf(t, "ada", app)); diff != "" {
		t.Errorf("after every project follows the default: %s", diff)
	}
	bad := grants.Default()
	bad.Analytics = "write"
	if err := f.grants.SetDefault(t.Context(), "ada", bad, true, true, audit.Person()); err == nil {
		t.Error("an unknown level was accepted")
	}
}
