package session

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/service-dev/service/daemon/internal/backend"
)

const wearer = "0123456789abcdef0123456789abcdef"

// remembering opens a session in virtual time with a script that remembers after a second, and attaches an app. file is
// the script, or a scenario.
func remembering(t *testing.T, m *Manager, file string) (o Opened, token string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file.json"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	o, err := m.StartLocal(t.Context(), from(dir), LocalRequest{Project: "com.example.app", Clock: backend.ClockVirtual,
		AssistantScript: "file.json"})
	if err != nil {
		t.Fatal(err)
	}
	a, _ := admit(t, m, o, nil)
	t.Cleanup(a.Leave)
	return o, welcome(t, a).Gateway.Token
}

const slowMemory = `[{"when":{"contains":"slow"},"reply":{"text":"Noted.","remember":"Likes tea","delayMs":1000}}]`

func wantMemory(t *testing.T, m *Manager, token, want string) {
	t.Helper()
	if p, err := m.Memory(token, wearer); err != nil || p.Text != want {
		t.Errorf("memory: got %q, %v, want %q", p.Text, err, want)
	}
}

// An answer is remembered when it is due. A profile that is erased before then stays empty.
func TestMemory_IsErasedDuringCalls(t *testing.T) {
	m := newLocal(t, t.TempDir(), &fakeTransports{}, nil)
	o, token := remembering(t, m, `{"rules":`+slowMemory+`}`)
	for _, erase := range []bool{false, true} {
		answered := make(chan error, 1)
		go func() {
			_, err := m.AskAssistant(context.Background(), token, wearer, chat("slow"))
			answered <- err
		}()
		s := m.local.find(o.SessionID)
		for waits := false; !waits; {
			runtime.Gosched()
			s.Mu.Lock()
			waits = len(s.calls) > 0
			s.Mu.Unlock()
		}
		if erase {
			if err := m.EraseMemory(token, wearer); err != nil {
				t.Fatal(err)
			}
		}
		wantMemory(t, m, token, "")
		if _, _, err := m.Advance(t.Context(), o.SessionID, 1000); err != nil {
			t.Fatal(err)
		}
		if err := <-answered; err != nil {
			t.Fatal(err)
		}
		if erase {
			wantMemory(t, m, token, "")
			continue
		}
		wantMemory(t, m, token, "Likes tea")
		if err := m.EraseMemory(token, wearer); err != nil {
			t.Fatal(err)
		}
	}
}

// A session that is opened with a scenario has the scenario's profile from the beginning, and a script brings back the
// stored profiles.
func TestMemory_OfAScenarioIsPrivate(t *testing.T) {
	m := newLocal(t, t.TempDir(), &fakeTransports{}, nil)
	o, token := remembering(t, m, `{"rules":`+slowMemory+`}`)
	if _, err := m.SetMemory(token, wearer, "Name: Ann"); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	open := func(file, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		script := filepath.Join(dir, file)
		s := m.local.find(o.SessionID)
		if _, err := m.StartLocal(t.Context(), from(s.state.read().Dir), LocalRequest{Project: "com.example.app",
			Clock: backend.ClockVirtual, AssistantScript: script}); err != nil {
			t.Fatal(err)
		}
	}
	open("scenario.json", `{"scenario":1,"name":"x","memory":"Name: Ben","assistant":{"rules":`+slowMemory+`},"steps":[]}`)
	wantMemory(t, m, token, "Name: Ben")
	if got, err := m.WearerMemory(o.SessionID); err != nil || got != "Name: Ben" {
		t.Errorf("got %q, %v, want Name: Ben", got, err)
	}
	open("script.json", `{"rules":`+slowMemory+`}`)
	wantMemory(t, m, token, "Name: Ann")
}

func TestMemory_NeedsAToken(t *testing.T) {
	m := newLocal(t, t.TempDir(), &fakeTransports{}, nil)
	if _, err := m.Memory("sgt_wrong", wearer); failure(err) != "invalid_key" {
		t.Errorf("read: got %v, want invalid_key", err)
	}
	if _, err := m.SetMemory("sgt_wrong", wearer, "a"); failure(err) != "invalid_key" {
		t.Errorf("replace: got %v, want invalid_key", err)
	}
	if err := m.EraseMemory("sgt_wrong", wearer); failure(err) != "invalid_key" {
		t.Errorf("erase: got %v, want invalid_key", err)
	}
}

// A session with a profile of its own does not use the stored profiles after a restart of the daemon.
func TestMemory_OfAScenarioStaysPrivateAfterARestart(t *testing.T) {
	dir := t.TempDir()
	m := New(Options{StateDir: dir, Backend: &fakeBackend{}, Transports: &fakeTransports{}, Endpoints: fakeEndpoints{}})
	stop := serve(t, m)
	o, token := remembering(t, m, `{"scenario":1,"name":"x","memory":"Name: Ben","assistant":{"rules":`+slowMemory+
		`},"steps":[]}`)
	wantMemory(t, m, token, "Name: Ben")
	m.local.profiles.Put("com.example.app", wearer, "Name: Ann")
	stop()
	m = newLocal(t, dir, &fakeTransports{}, nil)
	m.local.profiles.Put("com.example.app", wearer, "Name: Ann")
	s := m.local.find(o.SessionID)
	if s == nil || s.script == nil && s.wake() != nil {
		t.Fatal("the session is not open after the restart")
	}
	s.Mu.Lock()
	c, err := s.beginMemory(wearer)
	s.Mu.Unlock()
	if err != nil || c.Profile != "" {
		t.Errorf("after the restart: got %q, %v, want an empty profile", c.Profile, err)
	}
	c.End("Likes tea")
	if got := m.local.profiles.Get("com.example.app", wearer).Text; got != "Name: Ann" {
		t.Errorf("the stored profile is %q, want it unchanged", got)
	}
}

// While the file cannot be read, calls that remember are refused and the file stays.
func TestMemory_RefusesWhileUnreadable(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "memory.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	m := newLocal(t, dir, &fakeTransports{}, nil)
	_, token := remembering(t, m, `{"rules":`+slowMemory+`}`)
	_, read := m.Memory(token, wearer)
	_, set := m.SetMemory(token, wearer, "a")
	_, ask := m.AskAssistant(t.Context(), token, wearer, chat("slow"))
	_, speak := m.Converse(token, wearer, 24_000, nil)
	for what, err := range map[string]error{"read": read, "replace": set, "erase": m.EraseMemory(token, wearer),
		"call": ask, "conversation": speak} {
		if failure(err) != "unavailable" {
			t.Errorf("%s: got %v, want unavailable", what, err)
		}
	}
}
