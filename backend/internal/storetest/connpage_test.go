package storetest

import (
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"testing"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/connpage"
)

var connectionPageTests = map[string]func(*testing.T, *pageFixture){
	"an id, made once":           pageID,
	"a change and its author":    pageChange,
	"one of thirty changes wins": pageRace,
	"undo":                       pageUndo,
	"undo of what changed since": pageLateUndo,
	"one of thirty undos wins":   pageUndoRace,
	"projects that are merged":   pageMerge,
}

func TestConnectionPages(t *testing.T) {
	eachEngine(t, connectionPageTests, func(t *testing.T, db *database, test func(*testing.T, *pageFixture)) {
		f := newTenants(t, db)
		test(t, &pageFixture{Service: &connpage.Service{Store: db.connpageStore, Now: f.clock.now}, tenants: f})
	})
}

type pageFixture struct {
	*connpage.Service
	*tenants
}

func (f *pageFixture) page(t *testing.T, account, project string) connpage.Page {
	t.Helper()
	return must(f.Get(t.Context(), account, project))(t)
}

func (f *pageFixture) title(t *testing.T, version int64, title string) connpage.Page {
	t.Helper()
	_, after, err := f.Change(t.Context(), "ada", appID, connpage.Change{Version: version, Title: &title},
		audit.Agent(laptop))
	if err != nil {
		t.Fatal(err)
	}
	return after
}

func pageID(t *testing.T, f *pageFixture) {
	ids := make(chan string, 30)
	race(t, cap(ids), isAny(), func(int) error {
		p, err := f.Get(t.Context(), "ada", appID)
		ids <- p.PageID
		return err
	})
	first := <-ids
	if !regexp.MustCompile(`^cp_[a-z2-7]{20}$`).MatchString(first) {
		t.Errorf("the page ID %q has the wrong form", first)
	}
	close(ids)
	for id := range ids {
		if id != first {
			t.Errorf("one page has two IDs, %s and %s, want one", first, id)
		}
	}
	if f.page(t, "bob", appID).PageID == first || f.page(t, "ada", otherID).PageID == first {
		t.Error("another page has the same ID")
	}
	if p, err := f.ByPageID(t.Context(), first); err != nil || p.Project != appID || p.Title != "Example app" {
		t.Errorf("the page by its ID: got %+v (error %v), want the page of the project", p, err)
	}
	for _, id := range []string{"", "cp_", "cp_aaaaaaaaaaaaaaaaaaaa", first + "a", "xx" + first[2:], "cp_" +
		string(make([]byte, 20))} {
		want(t, "page "+id, errOf(f.ByPageID(t.Context(), id)), connpage.ErrNotFound)
	}
	want(t, "the page of no project", errOf(f.Get(t.Context(), "bob", otherID)), connpage.ErrNotFound)
}

func pageChange(t *testing.T, f *pageFixture) {
	first := f.page(t, "ada", appID)
	if first.Version != 0 || first.Title != "Example app" || first.Theme != "auto" || first.UpdatedBy != "" ||
		!first.UpdatedAt.IsZero() {
		t.Errorf("before any change: got %+v, want the defaults at version 0", first)
	}
	title, toggles := "Sous-chef", []connpage.Toggle{{ID: "captions", Label: "Captions", On: true}}
	before, after, err := f.Change(t.Context(), "ada", appID, connpage.Change{Title: &title, Toggles: &toggles,
		Theme: &first.Theme}, audit.Agent(laptop))
	if err != nil || before.Title != "Example app" || before.Version != 0 {
		t.Fatalf("before the change: got %+v (error %v), want the defaults at version 0", before, err)
	}
	stands := f.page(t, "ada", appID)
	if after.Version != 1 || after.Title != title || !slices.Equal(after.Toggles, toggles) ||
		after.UpdatedBy != "agent on laptop" ||
		!after.UpdatedAt.Equal(f.clock.now()) || stands.Version != 1 || stands.PageID != first.PageID ||
		!slices.Equal(stands.Toggles, toggles) {
		t.Errorf("after the change: got %+v, stored %+v, want version 1 with the new title and toggles", after, stands)
	}
	if after = f.title(t, 1, title); after.Version != 1 {
		t.Errorf("a change without effect made version %d, want 1", after.Version)
	}
	all := f.entries(t, "page.changed")
	if len(all) != 1 || all[0].Summary != "connection page: title, toggles" || all[0].Actor.LinkID != laptop ||
		all[0].Project != appID {
		t.Fatalf("audit entries: got %+v, want one for title and toggles", all)
	}
	var was, became map[string]any
	if json.Unmarshal(all[0].Before, &was) != nil || json.Unmarshal(all[0].After, &became) != nil || len(was) != 2 ||
		was["title"] != "Example app" || became["title"] != title {
		t.Errorf("audit values: got %s before and %s after, want the two changed fields", all[0].Before, all[0].After)
	}
	if f.page(t, "bob", appID).Title != "Example app" || f.page(t, "ada", otherID).Title != "Other" {
		t.Error("another page changed as well")
	}
	var conflict *connpage.ConflictError
	if _, _, err := f.Change(t.Context(), "ada", appID, connpage.Change{Version: 0, Title: &title},
		audit.Person()); !errors.As(err, &conflict) || conflict.Current != 1 {
		t.Errorf("a change of an old version: got %v, want a conflict with version 1", err)
	}
}

func pageRace(t *testing.T, f *pageFixture) {
	for version := range int64(3) {
		title := []string{"One", "Two", "Three"}[version]
		conflicts := func(err error) bool {
			var conflict *connpage.ConflictError
			return errors.As(err, &conflict) && conflict.Current == version+1
		}
		won, lost := race(t, 30, conflicts, func(int) error {
			_, _, err := f.Change(t.Context(), "ada", appID, connpage.Change{Version: version, Title: &title},
				audit.Agent(laptop))
			return err
		})
		if p := f.page(t, "ada", appID); won != 1 || lost != 29 || p.Version != version+1 || p.Title != title {
			t.Fatalf("%d changes won and %d lost, want 1 and 29; page %+v", won, lost, p)
		}
	}
	if n := len(f.entries(t, "page.changed")); n != 3 {
		t.Errorf("got %d audit entries for 3 changes, want 3", n)
	}
}

func pageUndo(t *testing.T, f *pageFixture) {
	f.title(t, 0, "Sous-chef")
	e := f.entries(t, "page.changed")[0]
	dark := "dark"
	if _, _, err := f.Change(t.Context(), "ada", appID, connpage.Change{Version: 1, Theme: &dark},
		audit.Person()); err != nil {
		t.Fatal(err)
	}
	foreign := e
	foreign.AccountID = "bob"
	want(t, "undo for another account", f.Undo(t.Context(), "ada", foreign, audit.Person()), connpage.ErrNotUndoable)
	want(t, "undo for another account", f.Undo(t.Context(), "bob", e, audit.Person()), connpage.ErrNotUndoable)
	want(t, "undo", f.Undo(t.Context(), "ada", e, audit.Person()), nil)
	if p := f.page(t, "ada", appID); p.Version != 3 || p.Title != "Example app" || p.Theme != "dark" ||
		p.UpdatedBy != "you" {
		t.Errorf("after the undo: got %+v, want version 3 with the old title and the new theme", p)
	}
	undo := f.entries(t, "page.undone")
	if len(undo) != 1 || string(undo[0].After) != string(e.Before) {
		t.Fatalf("audit entries: got %+v, want one with the restored values", undo)
	}
	want(t, "undo once more", f.Undo(t.Context(), "ada", e, audit.Person()), connpage.ErrConflict)
	want(t, "undo the undo", f.Undo(t.Context(), "ada", undo[0], audit.Person()), nil)
	want(t, "undo a second time", f.Undo(t.Context(), "ada", e, audit.Person()), connpage.ErrNotUndoable)
	if p := f.page(t, "ada", appID); p.Version != 4 || p.Title != "Sous-chef" {
		t.Errorf("after undoing the undo: got %+v, want version 4 with the title Sous-chef", p)
	}
}

func pageLateUndo(t *testing.T, f *pageFixture) {
	f.title(t, 0, "Sous-chef")
	e := f.entries(t, "page.changed")[0]
	f.title(t, 1, "Chef")
	want(t, "undo", f.Undo(t.Context(), "ada", e, audit.Person()), connpage.ErrConflict)
	if p := f.page(t, "ada", appID); p.Version != 2 || p.Title != "Chef" {
		t.Errorf("page: got %+v, want version 2 with the title Chef", p)
	}
	other := e
	other.Action = "assistant.changed"
	want(t, "undo of a change elsewhere", f.Undo(t.Context(), "ada", other, audit.Person()), connpage.ErrNotUndoable)
}

func pageUndoRace(t *testing.T, f *pageFixture) {
	f.title(t, 0, "Sous-chef")
	e := f.entries(t, "page.changed")[0]
	won, _ := race(t, 30, isAny(connpage.ErrConflict, connpage.ErrNotUndoable), func(int) error {
		return f.Undo(t.Context(), "ada", e, audit.Person())
	})
	if p := f.page(t, "ada", appID); won != 1 || p.Version != 2 || p.Title != "Example app" {
		t.Errorf("%d calls undid the change, want 1; page %+v", won, p)
	}
}

// If only one of the two projects has a page, the page's address stays valid.
func pageMerge(t *testing.T, f *pageFixture) {
	f.title(t, 0, "Sous-chef")
	first := f.page(t, "ada", appID)
	fatal(t, f.projects.Merge(t.Context(), "ada", appID, otherID, audit.Person()))
	if p, err := f.ByPageID(t.Context(), first.PageID); err != nil || p.Project != otherID || p.Title != "Sous-chef" {
		t.Errorf("after the merge: got %+v (error %v), want the page under the other project", p, err)
	}
}
