package session

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/glasses"
)

// standing waits for the next sim.standing sent to these glasses and returns it as JSON.
func (g *fakeGlasses) standing(t *testing.T) string {
	t.Helper()
	select {
	case s := <-g.stands:
		data, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	case <-time.After(10 * time.Second):
		t.Fatal("the glasses did not receive the standing state")
		return ""
	}
}

func succeed(t *testing.T, a *App, p *fakePeer, typ, id, payload string) {
	t.Helper()
	send(t, a, typ, id, payload)
	if res := p.result(t, id); !res.OK {
		t.Fatalf("%s: %+v", typ, res.Error)
	}
}

func welcome(t *testing.T, a *App) (w glasses.Welcome) {
	t.Helper()
	f, err := glasses.Parse(a.Welcome)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(f.Payload, &w); err != nil {
		t.Fatal(err)
	}
	return w
}

// replace detaches the session's glasses and returns the pair that replaces them.
func (t *fakeTransports) replace() *fakeGlasses {
	_ = t.last().Close()
	return <-t.begun
}

const (
	bothStand   = `{"phrases":["next page"],"transcription":{"language":"de"}}`
	phrasesOnly = `{"phrases":["next page"],"transcription":null}`
)

func TestStanding_IsRestoredOnGlasses(t *testing.T) {
	tr := &fakeTransports{begun: make(chan *fakeGlasses, 16)}
	m := newLocal(t, t.TempDir(), tr, nil)
	o := start(t, m, LocalRequest{Project: "com.example.app", Clock: "virtual"})
	<-tr.begun
	a, p := admit(t, m, o, nil)
	succeed(t, a, p, glasses.TypePhrasesAnnounce, "a-1", `{"phrases":["next page"]}`)
	tr.last().mu.Lock()
	tr.last().answer = func(f glasses.Frame) (glasses.Result, bool) {
		return glasses.Result{Error: &glasses.Error{Code: glasses.CodeBusy, Message: "no"}}, true
	}
	tr.last().mu.Unlock()
	send(t, a, glasses.TypeTranscriptionStart, "a-2", `{"language":"fr"}`)
	p.result(t, "a-2")
	if got := tr.replace().standing(t); got != phrasesOnly {
		t.Errorf("after a refused start: %s, want only phrases", got)
	}
	succeed(t, a, p, glasses.TypeTranscriptionStart, "a-3", `{"language":"de"}`)
	if got := tr.replace().standing(t); got != bothStand {
		t.Errorf("on other glasses: %s, want both", got)
	}
	cursor := a.rows.Last
	a.Leave()
	if got := tr.last().standing(t); got != phrasesOnly {
		t.Errorf("without an app: %s, want only phrases", got)
	}
	back, _ := admit(t, m, o, &cursor)
	if got := tr.last().standing(t); got != bothStand {
		t.Errorf("after the app returned: %s, want both", got)
	}
	back.Leave()
	tr.last().standing(t)
	if got := tr.replace().standing(t); got != phrasesOnly {
		t.Errorf("glasses that attach without an app: %s, want only phrases", got)
	}
	admit(t, m, o, nil) // a new process, which did not start transcription
	if got := tr.replace().standing(t); got != phrasesOnly {
		t.Errorf("with a new app: %s, want only phrases", got)
	}
}

// TestStanding_WaitsForGlasses checks phrases announced before glasses attach.
func TestStanding_WaitsForGlasses(t *testing.T) {
	tr := &fakeTransports{}
	m := newLocal(t, t.TempDir(), tr, nil)
	o := start(t, m, LocalRequest{Project: "com.example.app"})
	a, p := admit(t, m, o, nil)
	tr.mu.Lock()
	tr.err = errors.New("not now")
	tr.mu.Unlock()
	old := tr.last()
	_ = old.Close()
	p.wait(t, "the link to be lost", func(f glasses.Frame) bool { return f.Type == glasses.TypeLink })
	succeed(t, a, p, glasses.TypePhrasesAnnounce, "a-1", `{"phrases":["next page"]}`)
	succeed(t, a, p, glasses.TypeTranscriptionStop, "a-2", `{}`)
	send(t, a, glasses.TypeTranscriptionStart, "a-3", `{}`)
	if res := p.result(t, "a-3"); res.Error == nil || res.Error.Code != glasses.CodeNotConnected {
		t.Errorf("without glasses: %+v, want not_connected", res)
	}
	tr.mu.Lock()
	tr.err = nil
	tr.mu.Unlock()
	p.wait(t, "the link to be restored", func(f glasses.Frame) bool {
		return f.Type == glasses.TypeLink && string(f.Payload) == `{"state":"connected"}`
	})
	if got := tr.last().standing(t); got != phrasesOnly {
		t.Errorf("restored %s", got)
	}
}

// TestStanding_SurvivesTrimmedLog checks the welcome and the standing state after a restart if the rows that set them
// were trimmed.
func TestStanding_SurvivesTrimmedLog(t *testing.T) {
	dir, tr, f := t.TempDir(), &fakeTransports{}, &fakeBackend{}
	m := New(Options{StateDir: dir, Backend: f, Transports: tr, Endpoints: fakeEndpoints{}})
	stop := serve(t, m)
	o := start(t, m, LocalRequest{Project: "com.example.app", Clock: "virtual"})
	a, p := admit(t, m, o, nil)
	if w := welcome(t, a); w.Glasses.Battery.Level != 100 || w.Glasses.Link != glasses.LinkConnected ||
		w.Glasses.Clock != glasses.ClockVirtual || w.Glasses.Permissions["camera"] != glasses.PermissionGranted {
		t.Errorf("fresh glasses: %+v, want the default state", w.Glasses)
	}
	succeed(t, a, p, glasses.TypePhrasesAnnounce, "a-1", `{"phrases":["next page"]}`)
	succeed(t, a, p, glasses.TypeTranscriptionStart, "a-2", `{"language":"de"}`)
	tr.last().emit(glasses.TypeBattery, glasses.Battery{Level: 7})
	tr.last().emit(glasses.TypePermission, glasses.PermissionState{Part: "camera", State: "denied"})
	tr.last().emit(glasses.TypeDisabled, glasses.DisabledState{Parts: []string{"speech"}})
	p.wait(t, "the last event", func(f glasses.Frame) bool { return f.Type == glasses.TypeDisabled })
	a.Leave()
	rows := rowsOf(t, m, o.SessionID)
	stop()
	last, err := json.Marshal(rows[len(rows)-1])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, Dir, o.SessionID, eventsName), append(last, '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
	again := newLocal(t, dir, tr, nil)
	back := start(t, again, LocalRequest{Project: "com.example.app"})
	cursor := back.LastSeq
	b, _ := admit(t, again, back, &cursor)
	w := welcome(t, b)
	if w.Glasses.Battery.Level != 7 || w.Glasses.Permissions["camera"] != "denied" || len(w.Glasses.Disabled) != 1 {
		t.Errorf("after the restart: %+v, want the saved state", w.Glasses)
	}
	got := tr.last().standing(t)
	for got == phrasesOnly { // the glasses may attach before the app
		got = tr.last().standing(t)
	}
	if got != bothStand {
		t.Errorf("after the restart the standing state is %s, want both", got)
	}
}

func TestControl_RefusesStanding(t *testing.T) {
	m := newLocal(t, t.TempDir(), &fakeTransports{}, nil)
	o := start(t, m, LocalRequest{Project: "com.example.app"})
	_, err := m.Control(t.Context(), backend.Target{}, o.SessionID, glasses.SimStanding, glasses.Standing{}, nil)
	if err == nil || !strings.Contains(err.Error(), "is not a control frame to send") {
		t.Error(err)
	}
}

// TestStanding_OfEarlierVersion checks that phrases survive an upgrade from a version whose session.json had no
// standing state.
func TestStanding_OfEarlierVersion(t *testing.T) {
	dir, f := t.TempDir(), &fakeBackend{}
	tr := &fakeTransports{}
	m := New(Options{StateDir: dir, Backend: f, Transports: tr, Endpoints: fakeEndpoints{}})
	stop := serve(t, m)
	o := start(t, m, LocalRequest{Project: "com.example.app", Clock: "virtual"})
	a, p := admit(t, m, o, nil)
	succeed(t, a, p, glasses.TypePhrasesAnnounce, "a-1", `{"phrases":["next page"]}`)
	a.Leave()
	stop()
	path := filepath.Join(dir, Dir, o.SessionID, metaName)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var saved map[string]json.RawMessage
	if err := json.Unmarshal(data, &saved); err != nil {
		t.Fatal(err)
	}
	delete(saved, "standing")
	if data, err = json.Marshal(saved); err != nil {
		t.Fatal(err)
	}
	write(t, path, string(data))

	again := newLocal(t, dir, tr, nil)
	back := start(t, again, LocalRequest{Project: "com.example.app"})
	b, q := admit(t, again, back, nil)
	succeed(t, b, q, glasses.TypeTranscriptionStart, "b-1", `{"language":"de"}`)
	b.Leave()
	if got := tr.last().standing(t); got != phrasesOnly {
		t.Errorf("after the upgrade the standing state is %s, want the phrases", got)
	}
}

// TestStanding_ReportsEndByNewApp checks that a reconnecting app learns that its transcription has ended.
func TestStanding_ReportsEndByNewApp(t *testing.T) {
	m := newLocal(t, t.TempDir(), &fakeTransports{}, nil)
	o := start(t, m, LocalRequest{Project: "com.example.app", Clock: "virtual"})
	a, p := admit(t, m, o, nil)
	succeed(t, a, p, glasses.TypeTranscriptionStart, "a-1", `{"language":"de"}`)
	cursor := a.rows.Last
	a.Leave()
	admit(t, m, o, nil) // another app attaches before the first one returns
	back, _ := admit(t, m, o, &cursor)
	var ended []string
	err := back.Replay(t.Context(), func(frame []byte) error {
		f, err := glasses.Parse(frame)
		if f.Type == glasses.TypeTranscription {
			ended = append(ended, string(f.Payload))
		}
		return err
	})
	if err != nil || len(ended) != 1 || ended[0] != `{"running":false}` {
		t.Errorf("the app that returned got %v, error %v; want one row", ended, err)
	}
}
