package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/glasses"
)

var sessionTests = map[string]func(*testing.T, *sessionFixture){
	"fifty mints give one session": oneOfFifty,
	"mint":                         mints,
	"expiry slides":                expiry,
	"close and secrets":            closing,
	"ends with its link":           endsWithLink,
	"revoked secret":               revokedSecret,
	"foreign sessions are missing": foreign,
	"event log":                    eventLog,
	"events of many writers":       manyWriters,
	"last display":                 lastDisplay,
	"state of a session":           sessionState,
	"rows of a session":            sessionQuota,
	"bytes of an account":          accountQuota,
	"rows go at deletion":          deletedLog,
	"rows of idle sessions":        idleLog,
	"scripts and gateway tokens":   gatewayOfSession,
	"rows of a deleted project":    deletedProjectLog,
	"mints are paced":              pacedMints,
	"secrets are bounded":          boundedSecrets,
	"model":                        model,
	"counters of many writers":     countersHold,
}

// TestSessions tests sessions and their event log.
func TestSessions(t *testing.T) {
	eachEngine(t, sessionTests, func(t *testing.T, db *database, test func(*testing.T, *sessionFixture)) {
		test(t, newSessionFixture(t, db))
	})
}

type sessionFixture struct {
	*sessions.Service
	store *database
	clock *clock
	live  *liveSpy
	ada   sessions.Owner
}

// liveSpy is a fake relay that records calls. withApps are the sessions that have an app attached.
type liveSpy struct{ closed, switched, withApps []string }

func (l *liveSpy) Attached(string) sessions.Live { return sessions.Live{} }
func (l *liveSpy) WithApps(string) []string      { return slices.Clone(l.withApps) }
func (l *liveSpy) Closed(id string)              { l.closed = append(l.closed, id) }
func (l *liveSpy) Watch(string, string) (<-chan struct{}, func(), error) {
	return nil, func() {}, nil
}

func (l *liveSpy) Control(context.Context, string, string, json.RawMessage, []byte) (json.RawMessage, error) {
	return nil, sessions.ErrNoGlasses
}

func (l *liveSpy) Switched(_ context.Context, id, model string) {
	l.switched = append(l.switched, model)
}

func newSessionFixture(t *testing.T, store *database) *sessionFixture {
	f := &sessionFixture{store: store, clock: newClock(), live: &liveSpy{}}
	f.Service = &sessions.Service{Store: store.sessionsStore, Hasher: hash, Live: f.live, Now: f.clock.now}
	for _, id := range []string{"ada", "bob"} {
		addAccount(t, store, f.clock, id, id+"@example.org")
	}
	for id, account := range map[string]string{"link-1": "ada", "link-2": "ada", "link-3": "bob"} {
		addLink(t, store, f.clock, id, account, "")
	}
	f.ada = sessions.Owner{AccountID: "ada", LinkID: "link-1"}
	return f
}

func (f *sessionFixture) mint(t *testing.T, o sessions.Owner, r sessions.Request) (sessions.Session, bool) {
	t.Helper()
	if r.Project == "" {
		r.Project = "com.example.app"
	}
	s, created, err := f.Mint(t.Context(), o, r)
	if err != nil {
		t.Fatal(err)
	}
	return s, created
}

func oneOfFifty(t *testing.T, f *sessionFixture) {
	for round := range 5 {
		var mu sync.Mutex
		ids, made := map[string]bool{}, 0
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				s, created, err := f.Mint(t.Context(), f.ada, sessions.Request{Project: fmt.Sprint("com.example.p", round)})
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				ids[s.ID] = true
				if created {
					made++
				}
			})
		}
		wg.Wait()
		if len(ids) != 1 || made != 1 {
			t.Fatalf("round %d: got %d sessions, %d of them created; want 1", round, len(ids), made)
		}
	}
}

func mints(t *testing.T, f *sessionFixture) {
	first, created := f.mint(t, f.ada, sessions.Request{})
	if !created || first.DeviceModel != "rayban_display" || first.Platform != "web" {
		t.Errorf("first mint: got %+v, created %v; want a new session with the requested model", first, created)
	}
	again, created := f.mint(t, f.ada, sessions.Request{DeviceModel: "even_g1"})
	if created || again.ID != first.ID || again.DeviceModel != "even_g1" || len(f.live.switched) != 1 {
		t.Errorf("mint with another model: got %+v, created %v, notified %v; want the session with the model", again,
			created, f.live.switched)
	}
	kept, _ := f.mint(t, f.ada, sessions.Request{})
	if kept.DeviceModel != "even_g1" || len(f.live.switched) != 1 {
		t.Errorf("mint without a model: got %+v, want the model unchanged", kept)
	}
	for name, other := range map[string]struct {
		o sessions.Owner
		r sessions.Request
	}{
		"platform": {f.ada, sessions.Request{Platform: "ios"}},
		"project":  {f.ada, sessions.Request{Project: "com.example.other"}},
		"link":     {sessions.Owner{AccountID: "ada", LinkID: "link-2"}, sessions.Request{}},
		"account":  {sessions.Owner{AccountID: "bob", LinkID: "link-3"}, sessions.Request{}},
	} {
		if s, created := f.mint(t, other.o, other.r); !created || s.ID == first.ID {
			t.Errorf("a mint with another %s resumed the session", name)
		}
	}
	f.clock.pass(time.Second)
	fresh, created := f.mint(t, f.ada, sessions.Request{Fresh: true})
	if !created || fresh.ID == first.ID {
		t.Error("a fresh mint resumed the session")
	}
	if s, created := f.mint(t, f.ada, sessions.Request{}); created || s.ID != fresh.ID {
		t.Error("the fresh session is not the current one")
	}
	list, err := f.List(t.Context(), "ada")
	if err != nil || len(list) != 5 || list[0].ID != fresh.ID {
		t.Errorf("%d open sessions, want 5: %v", len(list), err)
	}
	for _, r := range []sessions.Request{{Project: "x"}, {Project: "a.b", Platform: "tv"}, {Project: "a.b",
		DeviceModel: "monocle"}} {
		var invalid *sessions.InvalidError
		if _, _, err := f.Mint(t.Context(), f.ada, r); !errors.As(err, &invalid) {
			t.Errorf("%+v: got %v, want an InvalidError", r, err)
		}
	}
}

func expiry(t *testing.T, f *sessionFixture) {
	first, _ := f.mint(t, f.ada, sessions.Request{})
	f.clock.pass(23 * time.Hour)
	if s, created := f.mint(t, f.ada, sessions.Request{}); created ||
		!s.ExpiresAt.Equal(f.clock.now().Add(sessions.Lifetime)) {
		t.Errorf("resume the session: got %+v, want it extended", s)
	}
	f.clock.pass(23 * time.Hour)
	fatal(t, f.Touch(t.Context(), first.ID))
	f.clock.pass(23 * time.Hour)
	if s, err := f.Get(t.Context(), "ada", first.ID); err != nil || s.State(f.clock.now()) != "open" {
		t.Errorf("after a touch: got %v (error %v), want open", s.State(f.clock.now()), err)
	}
	f.clock.pass(2 * time.Hour)
	fatal(t, f.Touch(t.Context(), first.ID))
	if s, err := f.Get(t.Context(), "ada", first.ID); err != nil || s.State(f.clock.now()) != "closed" {
		t.Errorf("get an expired session: got error %v, want it closed", err)
	}
	if s, created := f.mint(t, f.ada, sessions.Request{}); !created || s.ID == first.ID {
		t.Error("an expired session was resumed")
	}
}

func closing(t *testing.T, f *sessionFixture) {
	s, _ := f.mint(t, f.ada, sessions.Request{})
	one := must(f.MintSecret(t.Context(), "ada", s.ID))(t)
	two, err := f.MintSecret(t.Context(), "ada", s.ID)
	if err != nil || one == two {
		t.Fatalf("got an error or the first secret again, want a different one: %v", err)
	}
	for _, secret := range []string{one, two} {
		if got, err := f.Open(t.Context(), s.ID, secret); err != nil || got.ID != s.ID {
			t.Errorf("open: got error %v, want the session", err)
		}
	}
	other, _ := f.mint(t, f.ada, sessions.Request{Fresh: true})
	want(t, "a secret of another session", errOf(f.Open(t.Context(), other.ID, one)), sessions.ErrBadSecret)
	for range 2 {
		if got, err := f.Close(t.Context(), "ada", s.ID); err != nil || got.State(f.clock.now()) != "closed" {
			t.Errorf("close: got error %v, want the session closed", err)
		}
	}
	if len(f.live.closed) != 1 {
		t.Errorf("the relay was notified %d times, want once", len(f.live.closed))
	}
	want(t, "open a closed session", errOf(f.Open(t.Context(), s.ID, one)), sessions.ErrClosed)
	want(t, "a secret for a closed session", errOf(f.MintSecret(t.Context(), "ada", s.ID)), sessions.ErrClosed)
}

func model(t *testing.T, f *sessionFixture) {
	s, _ := f.mint(t, f.ada, sessions.Request{})
	set := func(to, want string) {
		t.Helper()
		fatal(t, f.SetModel(t.Context(), s.ID, to))
		if got, err := f.Get(t.Context(), "ada", s.ID); err != nil || got.DeviceModel != want {
			t.Errorf("model %s (error %v), want %s", got.DeviceModel, err, want)
		}
	}
	set("even_g1", "even_g1")
	must(f.Close(t.Context(), "ada", s.ID))(t)
	set("even_g2", "even_g1")
}

func foreign(t *testing.T, f *sessionFixture) {
	s, _ := f.mint(t, f.ada, sessions.Request{})
	for _, id := range []string{s.ID, "ses_missing"} {
		_, get := f.Get(t.Context(), "bob", id)
		_, closed := f.Close(t.Context(), "bob", id)
		_, minted := f.MintSecret(t.Context(), "bob", id)
		_, events := f.Events(t.Context(), "bob", id, 0, 0, 0)
		for _, err := range []error{get, closed, minted, events} {
			want(t, id, err, sessions.ErrNotFound)
		}
	}
	if list, err := f.List(t.Context(), "bob"); err != nil || len(list) != 0 {
		t.Errorf("bob sees %d sessions of ada, want none", len(list))
	}
}

func row(session, id, kind, typ string, ok bool) sessions.Row {
	return sessions.Row{SessionID: session, OK: ok, Event: glasses.Event{At: 7, Kind: kind, Chip: "display", Type: typ,
		ID:     id,
		Sender: glasses.SenderApp, Payload: []byte(`{"a":"ü\u0000"}`)}}
}

func eventLog(t *testing.T, f *sessionFixture) {
	s, _ := f.mint(t, f.ada, sessions.Request{})
	other, _ := f.mint(t, f.ada, sessions.Request{Fresh: true})
	rows := []sessions.Row{row(s.ID, "1", "request", "display.show", false), row(other.ID, "1", "event", "x", false),
		row(s.ID, "1", "result", "result", true), row(s.ID, "1", "request", "display.show", false), row(s.ID, "2", "event",
			"input", false)}
	fatal(t, f.store.AppendEvents(t.Context(), rows, sessions.DefaultQuota))
	for i, seq := range []int64{1, 1, 2, 1, 3} {
		if rows[i].Event.Seq != seq || rows[i].Duplicate != (i == 3) {
			t.Errorf("row %d: got seq %d, duplicate %v, want the next number and one duplicate", i, rows[i].Event.Seq,
				rows[i].Duplicate)
		}
	}
	page, err := f.Events(t.Context(), "ada", s.ID, 0, 2, 0)
	if err != nil || len(page.Events) != 2 || !page.More || page.Next != 2 {
		t.Fatalf("first page: got %+v (error %v), want two rows and more to come", page, err)
	}
	page, err = f.Events(t.Context(), "ada", s.ID, page.Next, 2, 0)
	if err != nil || len(page.Events) != 1 || page.More || page.Next != 3 ||
		string(page.Events[0].Payload) != `{"a":"ü\u0000"}` {
		t.Fatalf("second page: got %+v (error %v), want the last row", page, err)
	}
	page, err = f.Events(t.Context(), "ada", s.ID, 99, 0, 0)
	if err != nil || len(page.Events) != 0 || page.Next != 99 {
		t.Errorf("a page past the end: got %+v (error %v), want no rows and the same cursor", page, err)
	}
	if err := f.store.AppendEvents(t.Context(), []sessions.Row{row("ses_missing", "1", "event", "x", false)},
		sessions.DefaultQuota); !errors.Is(err, sessions.ErrNotFound) {
		t.Errorf("unknown session: got %v, want ErrNotFound", err)
	}
}

func manyWriters(t *testing.T, f *sessionFixture) {
	s, _ := f.mint(t, f.ada, sessions.Request{})
	other, _ := f.mint(t, f.ada, sessions.Request{Fresh: true})
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 10 {
				id := fmt.Sprint(w, "-", i)
				batch := []sessions.Row{row(s.ID, id, "event", "x", false), row(other.ID, id, "event", "x", false),
					row(s.ID, "same", "event", "x", false)}
				noError(t, f.store.AppendEvents(t.Context(), batch, sessions.DefaultQuota))
			}
		})
	}
	wg.Wait()
	rows, err := f.store.SessionEvents(t.Context(), s.ID, 0, 500)
	if err != nil || len(rows) != 81 {
		t.Fatalf("got %d rows, want 81: %v", len(rows), err)
	}
	for i, e := range rows {
		if e.Seq != int64(i+1) {
			t.Fatalf("row %d has seq %d, want no gap", i, e.Seq)
		}
	}
	if got, err := f.store.Session(t.Context(), s.ID); err != nil || got.LastSeq != 81 {
		t.Errorf("last seq is %d, want 81: %v", got.LastSeq, err)
	}
}

func lastDisplay(t *testing.T, f *sessionFixture) {
	s, _ := f.mint(t, f.ada, sessions.Request{})
	if m, err := f.store.Memory(t.Context(), s.ID); m.Display.Seq != 0 || err != nil {
		t.Errorf("an empty log: got %+v (error %v), want no display", m, err)
	}
	rows := []sessions.Row{row(s.ID, "1", "request", "display.show", false), row(s.ID, "1", "result", "result", true),
		row(s.ID, "2", "request", "display.show", false), row(s.ID, "2", "result", "result", false)}
	fatal(t, f.store.AppendEvents(t.Context(), rows, sessions.DefaultQuota))
	if m, err := f.store.Memory(t.Context(), s.ID); err != nil || m.Display.ID != "1" {
		t.Errorf("after a refused show: got %+v (error %v), want the display before it", m, err)
	}
}

// sessionState tests that a session keeps the state from the latest row that has one, even if later rows have none,
// and that the state is deleted with the log.
func sessionState(t *testing.T, f *sessionFixture) {
	s, _ := f.mint(t, f.ada, sessions.Request{})
	if m, err := f.store.Memory(t.Context(), s.ID); m.State != nil || err != nil {
		t.Errorf("a new session has the state %+v (error %v), want none", m.State, err)
	}
	want := sessions.FreshState()
	want.Standing = glasses.Standing{
		Phrases: []string{"n\u00e4chste Seite"}, Transcription: &glasses.TranscriptionStart{Language: "de"},
	}
	old := sessions.FreshState()
	rows := []sessions.Row{row(s.ID, "1", "event", "battery", false), row(s.ID, "2", "event", "wear", false),
		row(s.ID, "3", "event", "x", false)}
	rows[0].State, rows[1].State = &old, &want
	fatal(t, f.store.AppendEvents(t.Context(), rows, sessions.DefaultQuota))
	fatal(t, f.store.AppendEvents(t.Context(), []sessions.Row{row(s.ID, "4", "event", "x", false)}, sessions.DefaultQuota))
	if m, err := f.store.Memory(t.Context(), s.ID); err != nil || !reflect.DeepEqual(m.State, &want) {
		t.Errorf("got state %+v (error %v), want the one of the latest row that has one", m.State, err)
	}
	fatal(t, f.store.SweepLogs(t.Context(), f.clock.now().Add(time.Hour), f.clock.now(), sessions.DefaultQuota))
	if m, err := f.store.Memory(t.Context(), s.ID); m.State != nil || err != nil {
		t.Errorf("after the log was deleted the state is %+v (error %v), want none", m.State, err)
	}
}
