package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
)

var auditTests = map[string]func(*testing.T, *projectFixture){
	"pages":         auditPages,
	"names":         auditNames,
	"reads":         auditReads,
	"reads at once": auditReadsAtOnce,
	"retention":     auditRetention,
	"shares":        auditShares,
	"filters":       auditFilters,
}

func TestAudit(t *testing.T) { testProjects(t, auditTests) }

func (f *projectFixture) fill(n int) {
	for i := range n {
		f.store.exec(fmt.Sprintf(`INSERT INTO audit (id, account_id, at, actor, link_id, action, app_id, summary)
			VALUES ('0000-%06d', 'ada', %d, 'person', '', 'project.changed', '', '')`, i, f.clock.now().UnixMilli()))
	}
}

// auditPages tests that paging neither skips nor repeats an entry, even if entries are added between two pages.
func auditPages(t *testing.T, f *projectFixture) {
	f.fill(450)
	var got []string
	before := ""
	for {
		page := f.entries(t, audit.Filter{Before: before, Limit: 1000})
		if len(page) > audit.MaxListed {
			t.Fatalf("a page has %d entries, want at most audit.MaxListed", len(page))
		}
		if len(page) == 0 {
			break
		}
		for _, e := range page {
			got = append(got, e.ID)
		}
		before = page[len(page)-1].ID
		f.key(t, app)
	}
	if len(got) != 450 || !slices.IsSortedFunc(got, func(a, b string) int { return -compare(a, b) }) {
		t.Errorf("the pages have %d entries, want 450 in order", len(got))
	}
	if page := f.entries(t, audit.Filter{Limit: 2}); len(page) != 2 || page[0].Action != "key.minted" {
		t.Errorf("the two newest entries: got %+v, want two, the first for a minted key", page)
	}
	if page := f.entries(t, audit.Filter{Project: app}); len(page) != 4 {
		t.Errorf("the project has %d entries, want 4", len(page)) // its creation, and a key for each of three pages
	}
	if foreign, err := f.audit.List(t.Context(), "bob", audit.Filter{}); err != nil || len(foreign) != 0 {
		t.Errorf("bob's entries: got %v (error %v), want none", foreign, err)
	}
	want(t, "bob reads an entry of ada's", errOf(f.audit.Get(t.Context(), "bob", got[0])), audit.ErrNotFound)
}

func compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func auditNames(t *testing.T, f *projectFixture) {
	for who, name := range map[audit.Actor]string{
		audit.Agent("link-1"):     "laptop · test",
		audit.Agent("link-3"):     "an agent whose link was deleted", // bob's link, whose host name ada must not see
		audit.Agent("missing"):    "an agent whose link was deleted",
		audit.Person():            "you",
		audit.Operator():          "operator",
		{Kind: audit.KindBackend}: "the service",
	} {
		fatal(t, f.audit.Read(t.Context(), "ada", "", "some.read", who))
		e := f.entries(t, audit.Filter{Limit: 1})[0]
		if e.ActorName != name || e.Actor != who {
			t.Errorf("the actor %+v is named %q, want the name in the table", who, e.ActorName)
		}
		if again, err := f.audit.Get(t.Context(), "ada", e.ID); err != nil || again.ActorName != name ||
			again.Summary != e.Summary {
			t.Errorf("the entry read again: got %+v (error %v), want the same", again, err)
		}
	}
}

// auditReads tests that ten minutes of reading the same data over the same link leave one entry.
func auditReads(t *testing.T, f *projectFixture) {
	read := func(project, action, link string) int {
		t.Helper()
		fatal(t, f.audit.Read(t.Context(), "ada", project, action, audit.Agent(link)))
		return f.store.count("SELECT COUNT(*) FROM audit")
	}
	for i, c := range []struct {
		project, action, link string
		pass                  time.Duration
		n                     int
	}{
		{app, "assistant.read", "link-1", 0, 1},
		{app, "assistant.read", "link-1", 9 * time.Minute, 1},
		{app, "analytics.read", "link-1", 0, 2},
		{other, "assistant.read", "link-1", 0, 3},
		{app, "assistant.read", "link-2", 0, 4},
		{app, "assistant.read", "link-1", time.Minute, 5},
		{app, "assistant.read", "link-1", 0, 5},
	} {
		f.clock.pass(c.pass)
		if n := read(c.project, c.action, c.link); n != c.n {
			t.Errorf("step %d: %d entries, want %d", i, n, c.n)
		}
	}
	if e := f.entries(t, audit.Filter{Project: app})[0]; e.Action != "assistant.read" || e.Summary == "" || e.Undoable() {
		t.Errorf("entry: got %+v, want an assistant.read that cannot be undone", e)
	}
}

func auditReadsAtOnce(t *testing.T, f *projectFixture) {
	race(t, 20, isAny(), func(int) error {
		return f.audit.Read(t.Context(), "ada", app, "assistant.read", audit.Agent("link-1"))
	})
	if n := f.store.count("SELECT COUNT(*) FROM audit"); n != 1 {
		t.Errorf("%d entries are stored, want 1", n)
	}
}

// auditRetention tests that only the oldest entries beyond the limit are deleted, and only those of that account.
func auditRetention(t *testing.T, f *projectFixture) {
	f.fill(10)
	fatal(t, f.audit.Read(t.Context(), "bob", "", "assistant.read", audit.Person()))
	now := f.clock.now()
	n, err := f.audit.Store.SweepAudit(t.Context(), now.Add(-audit.Kept), now.Add(-24*time.Hour), 7, 1)
	if err != nil || n != 3 {
		t.Errorf("deleted %d entries (error %v), want 3", n, err)
	}
	if all := f.entries(t, audit.Filter{}); len(all) != 7 || all[6].ID != "0000-000003" {
		t.Errorf("%d entries remain, want the latest 7", len(all))
	}
	f.clock.pass(audit.Kept - time.Hour)
	f.key(t, app)
	want(t, "sweep", f.audit.Sweep(t.Context()), nil)
	if n := f.store.count("SELECT COUNT(*) FROM audit"); n != 10 {
		t.Errorf("%d entries remain within the retention, want 10", n)
	}
	f.clock.pass(2 * time.Hour)
	want(t, "sweep", f.audit.Sweep(t.Context()), nil)
	if got := f.actions(t); !slices.Equal(got, []string{"key.minted", "project.created"}) {
		t.Errorf("remaining actions: got %v, want key.minted and project.created", got)
	}
}

// auditShares tests that an agent with many entries pushes out only its own entries, and none that an undo needs.
func auditShares(t *testing.T, f *projectFixture) {
	add := func(by audit.Actor, action, before string) string {
		t.Helper()
		e := audit.New(f.clock.now(), "ada", by, action, app, "")
		if before != "" {
			e.Before, e.After = []byte(before), []byte(before)
		}
		fatal(t, f.store.InsertAudit(t.Context(), e))
		return e.ID
	}
	flooding, quiet := audit.Agent("link-1"), audit.Agent("link-2")
	kept := []string{
		add(audit.Person(), "grants.changed", ""),
		add(quiet, "assistant.changed", `{"voice":"ember"}`),
		add(flooding, "assistant.changed", `{"voice":"harbor","sounds":true}`), // the latest change of sounds
		add(flooding, "page.changed", `{"voice":"harbor"}`),                    // another record's field of that name
	}
	superseded := add(flooding, "assistant.changed", `{"voice":"ember"}`)
	undone := add(flooding, "page.changed", `{"title":"a"}`)
	f.store.exec("UPDATE audit SET undone_by = 'x' WHERE id = '" + undone + "'")
	kept = append(kept, add(flooding, "assistant.changed", `{"voice":"grove"}`))
	for range 30 {
		add(flooding, "key.minted", "")
	}
	now := f.clock.now()
	for range 2 { // the second sweep finds nothing more to delete
		_, err := f.audit.Store.SweepAudit(t.Context(), now.Add(-audit.Kept), now.Add(-24*time.Hour), 10, 5)
		want(t, "sweep", err, nil)
	}
	left := map[string]bool{}
	for _, e := range f.entries(t, audit.Filter{}) {
		left[e.ID] = true
	}
	for i, id := range kept {
		if !left[id] {
			t.Errorf("entry %d was pushed out", i)
		}
	}
	if left[superseded] || left[undone] || len(left) != len(kept)+5 {
		t.Errorf("%d entries are left (superseded %t, undone %t), want %d", len(left), left[superseded], left[undone],
			len(kept)+5)
	}
}

// auditFilters tests each filter separately and together with the cursor.
func auditFilters(t *testing.T, f *projectFixture) {
	start := f.clock.now()
	f.key(t, app) // by the agent: project.created and key.minted
	f.clock.pass(time.Hour)
	must(f.MintKey(t.Context(), "ada", other, "x", audit.Person()))(t)
	fatal(t, f.audit.Read(t.Context(), "ada", app, "analytics.read", audit.Agent("link-2")))
	f.clock.pass(time.Hour)
	for name, c := range map[string]struct {
		filter audit.Filter
		want   []string
	}{
		"noun":    {audit.Filter{Nouns: []string{"key"}}, []string{"key.minted", "key.minted"}},
		"nouns":   {audit.Filter{Nouns: []string{"analytics", "project"}, Project: app}, []string{"analytics.read", "project.created"}},
		"actor":   {audit.Filter{Actor: audit.KindPerson}, []string{"key.minted", "project.created"}},
		"agents":  {audit.Filter{Actor: audit.KindAgent}, []string{"analytics.read", "key.minted", "project.created"}},
		"a link":  {audit.Filter{Actor: audit.KindAgent, LinkID: "link-2"}, []string{"analytics.read"}},
		"changes": {audit.Filter{ChangesOnly: true, Project: app}, []string{"key.minted", "project.created"}},
		"from":    {audit.Filter{From: start.Add(time.Minute)}, []string{"analytics.read", "key.minted", "project.created"}},
		"to":      {audit.Filter{To: start.Add(time.Minute)}, []string{"key.minted", "project.created"}},
		"none":    {audit.Filter{Nouns: []string{"ke"}}, nil},
	} {
		var got []string
		for _, e := range f.entries(t, c.filter) {
			got = append(got, e.Action)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
	keys := f.entries(t, audit.Filter{Nouns: []string{"key"}})
	if next := f.entries(t, audit.Filter{Nouns: []string{"key"}, Before: keys[0].ID}); len(next) != 1 ||
		next[0].ID != keys[1].ID {
		t.Errorf("the page after the first key: got %+v, want the other key", next)
	}
}
