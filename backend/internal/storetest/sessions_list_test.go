package storetest

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/glasses"
)

var sessionListTests = map[string]func(*testing.T, *sessionFixture){
	"pages":      sessionPages,
	"order":      sessionOrder,
	"milestones": sessionMilestones,
	"shown":      sessionShown,
}

// TestSessionLists tests the data of a user's pages about sessions.
func TestSessionLists(t *testing.T) {
	eachEngine(t, sessionListTests, func(t *testing.T, db *database, test func(*testing.T, *sessionFixture)) {
		test(t, newSessionFixture(t, db))
	})
}

// sessionPages tests that paging neither skips nor repeats a session, even among sessions created at the same time, and
// omits ended sessions and sessions of another account or project.
func sessionPages(t *testing.T, f *sessionFixture) {
	closed, _ := f.mint(t, f.ada, sessions.Request{Fresh: true})
	must(f.Close(t.Context(), "ada", closed.ID))(t)
	f.mint(t, f.ada, sessions.Request{Fresh: true, Project: "com.example.old"})
	f.clock.pass(sessions.Lifetime) // both have ended
	var want []string
	for i := range 7 {
		if i%3 == 0 {
			f.clock.pass(time.Second)
		}
		s, _ := f.mint(t, f.ada, sessions.Request{Fresh: true, Project: fmt.Sprint("com.example.p", i%2)})
		want = append(want, s.ID)
	}
	bob, _ := f.mint(t, sessions.Owner{AccountID: "bob", LinkID: "link-3"}, sessions.Request{})
	var got []string
	f.live.withApps = []string{want[0], want[2], want[3], closed.ID, bob.ID}
	for after, more := "", true; more; more = after != "" {
		var list []sessions.Session
		var err error
		list, after, err = f.Page(t.Context(), "ada", sessions.Listing{After: after, Limit: 2})
		if err != nil || len(list) == 0 || len(list) > 2 {
			t.Fatalf("a page has %d sessions (error %v), want 1 or 2", len(list), err)
		}
		for _, s := range list {
			got = append(got, s.ID)
		}
	}
	if attached := slices.Sorted(slices.Values(got[:3])); !slices.Equal(attached,
		slices.Sorted(slices.Values([]string{want[0], want[2], want[3]}))) {
		t.Errorf("the list begins with %v, want the sessions with an app", got[:3])
	}
	if slices.Sort(got); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		t.Errorf("the pages list %v, want %v", got, want)
	}
	list, next, err := f.Page(t.Context(), "ada", sessions.Listing{Project: "com.example.p1", Limit: 3})
	if err != nil || next != "" || len(list) != 3 || list[0].ID != want[3] {
		t.Errorf("sessions of a project: got %+v, next %q (error %v), want three, that with an app first", list, next, err)
	}
	if _, _, err := f.Page(t.Context(), "ada", sessions.Listing{After: want[3], Limit: 3}); !errors.Is(err,
		sessions.ErrNotFound) {
		t.Errorf("no position: got %v, want ErrNotFound", err)
	}
	f.store.exec("UPDATE links SET revoked_at = 1 WHERE id = 'link-1'")
	if list, _, err := f.Page(t.Context(), "ada", sessions.Listing{Limit: 3}); err != nil || len(list) != 0 {
		t.Errorf("after the link was revoked: got %v (error %v), want none", list, err)
	}
}

// sessionOrder tests that a session moves to the front when it is used, or when an app attaches, and that the start of
// the following page stays the same even if its session was used meanwhile.
func sessionOrder(t *testing.T, f *sessionFixture) {
	var ids []string
	for range 5 {
		f.clock.pass(time.Minute)
		s, _ := f.mint(t, f.ada, sessions.Request{Fresh: true})
		ids = append(ids, s.ID)
	}
	page := func(after string, want ...int) (next string) {
		t.Helper()
		list, next, err := f.Page(t.Context(), "ada", sessions.Listing{After: after, Limit: 3})
		var got []int
		for _, s := range list {
			got = append(got, slices.Index(ids, s.ID))
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("got sessions %v (error %v), want %v", got, err, want)
		}
		return next
	}
	page("", 4, 3, 2)
	f.clock.pass(time.Minute)
	fatal(t, f.Touch(t.Context(), ids[1]))
	next := page("", 1, 4, 3)
	f.live.withApps = ids[:1]
	page("", 0, 1, 4)
	f.live.withApps = nil
	f.clock.pass(time.Minute)
	fatal(t, f.Touch(t.Context(), ids[3])) // the last of the page
	page(next, 2, 0)
}

func sessionMilestones(t *testing.T, f *sessionFixture) {
	check := func(when string, want sessions.Milestones) {
		t.Helper()
		if got, err := f.Milestones(t.Context(), "ada"); err != nil || got != want {
			t.Errorf("%s: got %+v (error %v), want %+v", when, got, err, want)
		}
	}
	check("at first", sessions.Milestones{})
	f.mint(t, sessions.Owner{AccountID: "bob", LinkID: "link-3"}, sessions.Request{})
	check("after another account's session", sessions.Milestones{})
	s, _ := f.mint(t, f.ada, sessions.Request{})
	check("with a session", sessions.Milestones{Opened: true})
	attach := row(s.ID, "1", "event", glasses.RowAppAttached, false)
	fatal(t, f.store.AppendEvents(t.Context(), []sessions.Row{row(s.ID, "0", "event", "glasses.attached", false)},
		sessions.DefaultQuota))
	check("with a page", sessions.Milestones{Opened: true})
	fatal(t, f.store.AppendEvents(t.Context(), []sessions.Row{attach}, sessions.DefaultQuota))
	must(f.Close(t.Context(), "ada", s.ID))(t) // this deletes the rows
	check("with an app, although its session ended", sessions.Milestones{Opened: true, AppSeen: true})
}

func sessionShown(t *testing.T, f *sessionFixture) {
	s, _ := f.mint(t, f.ada, sessions.Request{})
	fatal(t, f.store.AppendEvents(t.Context(), []sessions.Row{row(s.ID, "1", "request", "display.show", false),
		row(s.ID, "1", "result", "result", true)}, sessions.DefaultQuota))
	_, m, err := f.Shown(t.Context(), "ada", s.ID)
	if err != nil || m.Display.Type != "display.show" || m.Display.ID != "1" {
		t.Errorf("got %+v (error %v), want the command", m, err)
	}
	_, _, err = f.Shown(t.Context(), "bob", s.ID)
	want(t, "another account", err, sessions.ErrNotFound)
	must(f.Close(t.Context(), "ada", s.ID))(t)
	_, _, err = f.Shown(t.Context(), "ada", s.ID)
	want(t, "a closed session", err, sessions.ErrClosed)
}
