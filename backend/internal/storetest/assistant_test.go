package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/service-dev/service/backend/internal/assistant"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/projects"
	"github.com/service-dev/service/backend/internal/sessions"
)

var assistantTests = map[string]func(*testing.T, *assistantFixture){
	"a change and its author":    assistantChange,
	"a project that is gone":     assistantOfNoProject,
	"one of fifty changes wins":  assistantRace,
	"undo":                       assistantUndo,
	"merged projects":            assistantOfMerged,
	"undo of what changed since": assistantLateUndo,
	"one of fifty undos wins":    assistantUndoRace,
}

func TestAssistant(t *testing.T) {
	eachEngine(t, assistantTests, func(t *testing.T, db *database, test func(*testing.T, *assistantFixture)) {
		f := newSessionFixture(t, db)
		for account, link := range map[string]string{"ada": "link-1", "bob": "link-3"} {
			f.mint(t, sessions.Owner{AccountID: account, LinkID: link}, sessions.Request{})
		}
		catalogue := must(assistant.LoadCatalogue(""))(t)
		test(t, &assistantFixture{Service: &assistant.Service{Store: db.assistantStore, Catalogue: catalogue,
			Now: f.clock.now},
			store:    db,
			projects: &projects.Service{Store: db.projectsStore, Hasher: hash, Now: f.clock.now}})
	})
}

type assistantFixture struct {
	*assistant.Service
	store    *database
	projects *projects.Service
}

// entries returns the audit entries of the config's changes, newest first.
func (f *assistantFixture) entries(t *testing.T) []audit.Entry {
	t.Helper()
	return must(f.store.AuditEntries(t.Context(), "ada", audit.Filter{Nouns: []string{"assistant"}, Limit: 100}))(t)
}

func (f *assistantFixture) last(t *testing.T) audit.Entry {
	t.Helper()
	return f.entries(t)[0]
}

const appID = "com.example.app"

func (f *assistantFixture) config(t *testing.T, account string) assistant.Config {
	t.Helper()
	return must(f.Get(t.Context(), account, appID))(t)
}

func (f *assistantFixture) voice(t *testing.T, version int64, voice string, by audit.Actor) assistant.Config {
	t.Helper()
	_, after, err := f.Change(t.Context(), "ada", appID, assistant.Change{Version: version, Voice: &voice}, by)
	if err != nil {
		t.Fatal(err)
	}
	return after
}

func assistantChange(t *testing.T, f *assistantFixture) {
	first := f.config(t, "ada")
	if first.Version != 0 || first.Voice != "ember" || !first.UpdatedAt.IsZero() || first.UpdatedBy != "" {
		t.Errorf("before any change: got %+v, want the defaults at version 0", first)
	}
	after := f.voice(t, 0, "harbor", audit.Agent("link-1"))
	want := first
	want.Version, want.Voice, want.UpdatedAt, want.UpdatedBy = 1, "harbor", after.UpdatedAt, "agent"
	if after != want || after != f.config(t, "ada") || after.UpdatedAt.IsZero() {
		t.Errorf("after the change: got %+v, want the new voice and the time of the change", after)
	}
	e := f.last(t)
	if e.Action != "assistant.changed" || e.Summary != "voice: ember -> harbor" || e.Project != appID ||
		e.Actor.LinkID != "link-1" ||
		string(e.Before) != `{"voice":"ember"}` || string(e.After) != `{"voice":"harbor"}` {
		t.Errorf("audit entry: got %+v, want the change of the voice by the agent", e)
	}
	off, model := false, "realtime-swift"
	before, after, err := f.Change(t.Context(), "ada", appID, assistant.Change{Version: 1, RealtimeModel: &model,
		Sounds: &off, SessionMemory: &off}, audit.Person())
	if err != nil || before.Version != 1 || after.Version != 2 || after.Sounds || after.SessionMemory ||
		after.RealtimeModel != model || after.UpdatedBy != "you" {
		t.Errorf("got %+v before and %+v after (error %v), want versions 1 and 2 and the changed fields", before, after, err)
	}
	if bob := f.config(t, "bob"); bob != first {
		t.Errorf("another account's config changed to %+v, want no change", bob)
	}
}

func assistantOfNoProject(t *testing.T, f *assistantFixture) {
	voice := "harbor"
	_, _, err := f.Change(t.Context(), "ada", "com.example.deleted", assistant.Change{Voice: &voice}, audit.Person())
	want(t, "change", err, assistant.ErrNoProject)
}

func assistantRace(t *testing.T, f *assistantFixture) {
	for version := range int64(4) {
		voice := []string{"harbor", "willow", "slate", "ember"}[version]
		conflicts := func(err error) bool {
			var conflict *assistant.ConflictError
			return errors.As(err, &conflict) && conflict.Current == version+1
		}
		won, lost := race(t, 50, conflicts, func(i int) error {
			_, _, err := f.Change(t.Context(), "ada", appID, assistant.Change{Version: version, Voice: &voice},
				audit.Agent(fmt.Sprint("link-", i%2+1)))
			return err
		})
		if won != 1 || lost != 49 {
			t.Fatalf("%d changes won and %d lost, want 1 and 49", won, lost)
		}
		if c := f.config(t, "ada"); c.Version != version+1 || c.Voice != voice {
			t.Errorf("config: got %+v, want the winner's voice as the next version", c)
		}
	}
	if n := len(f.entries(t)); n != 4 {
		t.Errorf("got %d audit entries for 4 changes, want 4", n)
	}
}

func assistantUndo(t *testing.T, f *assistantFixture) {
	f.voice(t, 0, "harbor", audit.Agent("link-1"))
	e := f.last(t)
	off := false
	if _, _, err := f.Change(t.Context(), "ada", appID, assistant.Change{Version: 1, Sounds: &off},
		audit.Person()); err != nil {
		t.Fatal(err)
	}
	foreign := e
	foreign.AccountID = "bob"
	want(t, "undo for another account", f.Undo(t.Context(), "ada", foreign, audit.Person()), assistant.ErrNotUndoable)
	want(t, "undo for another account", f.Undo(t.Context(), "bob", e, audit.Person()), assistant.ErrNotUndoable)
	want(t, "undo", f.Undo(t.Context(), "ada", e, audit.Person()), nil)
	c := f.config(t, "ada")
	if c.Version != 3 || c.Voice != "ember" || c.Sounds || c.UpdatedBy != "you" {
		t.Errorf("after the undo: got %+v, want version 3 with voice ember", c)
	}
	undo := f.last(t)
	if undo.Action != "assistant.undone" || undo.Summary != "voice: harbor -> ember" ||
		string(undo.After) != string(e.Before) {
		t.Errorf("audit entry of the undo: got %+v, want harbor -> ember", undo)
	}
	want(t, "undo once more", f.Undo(t.Context(), "ada", e, audit.Person()), assistant.ErrConflict)
	want(t, "undo the undo", f.Undo(t.Context(), "ada", undo, audit.Person()), nil)
	// The voice has the value from the entry again, but the entry is already undone.
	want(t, "undo a second time", f.Undo(t.Context(), "ada", e, audit.Person()), assistant.ErrNotUndoable)
	if c := f.config(t, "ada"); c.Version != 4 || c.Voice != "harbor" {
		t.Errorf("after undoing the undo: got %+v, want version 4 with voice harbor", c)
	}
}

func assistantLateUndo(t *testing.T, f *assistantFixture) {
	f.voice(t, 0, "harbor", audit.Agent("link-1"))
	e := f.last(t)
	f.voice(t, 1, "willow", audit.Agent("link-1"))
	want(t, "undo", f.Undo(t.Context(), "ada", e, audit.Person()), assistant.ErrConflict)
	if c := f.config(t, "ada"); c.Version != 2 || c.Voice != "willow" {
		t.Errorf("config: got %+v, want version 2 with voice willow", c)
	}
	read := audit.New(e.At, "ada", audit.Person(), "assistant.read", appID, "read")
	read.Before, read.After = json.RawMessage(`{}`), json.RawMessage(`{}`)
	want(t, "undo of a recorded read", f.Undo(t.Context(), "ada", read, audit.Person()), assistant.ErrNotUndoable)
}

func assistantUndoRace(t *testing.T, f *assistantFixture) {
	f.voice(t, 0, "harbor", audit.Agent("link-1"))
	e := f.last(t)
	won, _ := race(t, 50, isAny(assistant.ErrConflict, assistant.ErrNotUndoable), func(int) error {
		return f.Undo(t.Context(), "ada", e, audit.Person())
	})
	if c := f.config(t, "ada"); won != 1 || c.Version != 2 || c.Voice != "ember" {
		t.Errorf("%d calls undid the change, want 1; config %+v", won, c)
	}
}

// assistantOfMerged tests that a merge keeps the config of the dropped project unless the other project has a config.
func assistantOfMerged(t *testing.T, f *assistantFixture) {
	f.voice(t, 0, "harbor", audit.Agent("link-1"))
	for i, into := range []string{"com.example.second", "com.example.third"} {
		must(f.projects.MintKey(t.Context(), "ada", into, "x", audit.Person()))(t)
		from := []string{appID, "com.example.second"}[i]
		if into == "com.example.third" {
			voice := "willow"
			if _, _, err := f.Change(t.Context(), "ada", into, assistant.Change{Voice: &voice}, audit.Person()); err != nil {
				t.Fatal(err)
			}
		}
		fatal(t, f.projects.Merge(t.Context(), "ada", from, into, audit.Person()))
		c, err := f.Get(t.Context(), "ada", into)
		if want := []string{"harbor", "willow"}[i]; err != nil || c.Voice != want || c.Version != 1 {
			t.Errorf("%s: got %+v, want the voice %s (error %v)", into, c, want, err)
		}
	}
}
