package relay_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pressly/goose/v3"

	"github.com/service-dev/service/backend/internal/db"
	"github.com/service-dev/service/backend/internal/relay"
	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/test/enginetest"
)

// earlierRows are rows of a session from before the log stored a session's state.
var earlierRows = []glasses.Event{
	{Sender: "glasses", Kind: "event", Type: "battery", ID: "g1", Payload: []byte(`{"level":15,"charging":true}`)},
	{Sender: "app", Kind: "request", Type: "phrases.announce", ID: "a1", Payload: []byte(`{"phrases":["next page"]}`)},
	{Sender: "glasses", Kind: "result", Type: "result", ID: "a1", Payload: []byte(`{"ok":true}`)},
	{Sender: "app", Kind: "request", Type: "transcription.start", ID: "a2", Payload: []byte(`{"language":"de"}`)},
	{Sender: "glasses", Kind: "result", Type: "result", ID: "a2",
		Payload: []byte(`{"error":{"code":"busy","message":"a phone call is active"}}`)},
	// The app sent this event itself; it is not a report from the glasses.
	{Sender: "app", Kind: "event", Type: "wear", ID: "a3", Payload: []byte(`{"worn":false}`)},
	{Sender: "glasses", Kind: "event", Type: "thermal", ID: "g2", Payload: []byte(`{"state":"warm"}`)},
}

// newEarlierDatabase returns an upgraded database with a session from before the upgrade. Its log begins with first.
func newEarlierDatabase(t *testing.T, first int) *sessions.Store {
	t.Helper()
	where := filepath.Join(t.TempDir(), "service.db")
	client := enginetest.Connect(t, where)
	provider, err := goose.NewProvider(goose.DialectSQLite3, client, os.DirFS("../db/migrations"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := provider.UpTo(t.Context(), 21); err != nil {
		t.Fatal(err)
	}
	exec := func(statement string, args ...any) {
		t.Helper()
		if _, err := client.ExecContext(t.Context(), statement, args...); err != nil {
			t.Fatal(err)
		}
	}
	exec(`INSERT INTO accounts (id, email, password_hash, state, privacy_accepted_at, created_at)
		VALUES ('ada', 'ada@example.org', 'x', 'active', 1, 1)`)
	exec(`INSERT INTO projects (account_id, app_id, created_at) VALUES ('ada', 'com.example.app', 1)`)
	exec(`INSERT INTO links (id, account_id, token_hash, host, os, client, ip, linked_at)
		VALUES ('link-1', 'ada', 'x', 'host', 'linux', 'cli', '', 1)`)
	exec(`INSERT INTO sessions (id, account_id, link_id, app_id, platform, device_model, is_current, created_at,
			last_active_at, expires_at, first_seq, last_seq)
		VALUES ($1, 'ada', 'link-1', 'com.example.app', 'web', 'rayban_display', 1, 1, 1, $2, $3, $4)`,
		testID, time.Now().Add(time.Hour).UnixMilli(), first, len(earlierRows))
	exec(`INSERT INTO account_logs (account_id, bytes) VALUES ('ada', 0)`)
	for i, e := range earlierRows[first-1:] {
		exec(`INSERT INTO events (session_id, seq, sender, frame_id, kind, type, chip, ok, at, body)
			VALUES ($1, $2, $3, $4, $5, $6, 'x', 1, 1, $7)`, testID, first+i, e.Sender, e.ID, e.Kind, e.Type, string(e.Payload))
	}
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	d, err := db.Open(t.Context(), where, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return sessions.NewStore(d)
}

func TestUpgrade_StateFollowsFromWholeLog(t *testing.T) {
	store, m := newEarlierDatabase(t, 1), newMemory()
	n := serve(t, m, store, m, relay.Options{})
	page, w := n.page(t, "")
	if w.Glasses == nil || w.Glasses.Battery.Level != 15 || w.Glasses.Thermal != "warm" || !w.Glasses.Worn {
		t.Errorf("the page received %+v, want the state from the whole log", w.Glasses)
	}
	if s := page.standing(); encoded(t, s) != `{"phrases":["next page"],"transcription":null}` {
		t.Errorf("the page received the settings %+v, want the phrases only", s)
	}
	page.wantRow(glasses.RowGlassesAttached)
	memory, err := store.Memory(t.Context(), testID)
	if err != nil || memory.State == nil || memory.State.Glasses.Battery.Level != 15 {
		t.Errorf("the next row stored %+v, error %v; want the state from the whole log", memory.State, err)
	}
}

func TestUpgrade_StateIsUnknownWithTrimmedLog(t *testing.T) {
	store, m := newEarlierDatabase(t, len(earlierRows)), newMemory()
	for _, id := range []string{"p1", "p2"} { // a second time after a restart, with a state stored in between
		n := serve(t, m, store, m, relay.Options{})
		page, w := n.page(t, "")
		if w.Glasses != nil {
			t.Errorf("the page received %+v, want no state", w.Glasses)
		}
		app, welcome := n.app(t, "")
		if welcome.Glasses.Thermal != "warm" {
			t.Errorf("the app received %+v, want the reported temperature", welcome.Glasses)
		}
		page.send("wear", id, `{"worn":false}`)
		app.want("wear", nil)
		n.stop()
	}
}
