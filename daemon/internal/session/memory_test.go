package session

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/glasses/assistantscript"
	"github.com/service-dev/service/glasses/host"
	"github.com/service-dev/service/internal/problem"
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

// A session whose script cannot be replaced keeps it, and its own profile.
func TestMemory_StaysWithTheScript(t *testing.T) {
	m := newLocal(t, t.TempDir(), &fakeTransports{}, nil)
	o, token := remembering(t, m, `{"rules":`+slowMemory+`}`)
	before := m.AssistantScript(o.SessionID)
	if _, err := m.UseScenario(t.Context(), backend.Target{}, o.SessionID, nil, new("Name: Ben")); err != nil {
		t.Fatal(err)
	}
	s := m.local.find(o.SessionID)
	path := filepath.Join(s.folder(), scriptName)
	if err := errors.Join(os.Remove(path), os.MkdirAll(filepath.Join(path, "in the way"), 0o700)); err != nil {
		t.Fatal(err)
	}
	err := s.replaceScript(&assistantscript.Script{}, nil)
	if err == nil || m.AssistantScript(o.SessionID) != before {
		t.Errorf("got %v, or another script than before", err)
	}
	wantMemory(t, m, token, "Name: Ben")
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
	if err := m.local.profiles.Put("com.example.app", wearer, "Name: Ann"); err != nil {
		t.Fatal(err)
	}
	stop()
	m = newLocal(t, dir, &fakeTransports{}, nil)
	if err := m.local.profiles.Put("com.example.app", wearer, "Name: Ann"); err != nil {
		t.Fatal(err)
	}
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

// A change that cannot be written is refused and has no effect.
func TestMemory_RefusesWhatItCannotWrite(t *testing.T) {
	dir := t.TempDir()
	m := newLocal(t, dir, &fakeTransports{}, nil)
	_, token := remembering(t, m, `{"rules":`+slowMemory+`}`)
	if _, err := m.SetMemory(token, wearer, "Name: Ann"); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "memory.json")
	if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil { // nothing can replace it
		t.Fatal(err)
	}
	_, set := m.SetMemory(token, wearer, "Name: Ben")
	for what, err := range map[string]error{"replace": set, "erase": m.EraseMemory(token, wearer)} {
		if failure(err) != "unavailable" {
			t.Errorf("%s: got %v, want unavailable", what, err)
		}
	}
	wantMemory(t, m, token, "Name: Ann")
}

// A scenario that could not start leaves no trace in the session, and what replaced it meanwhile stays.
func TestUseScenario_Restores(t *testing.T) {
	m := newLocal(t, t.TempDir(), &fakeTransports{}, nil)
	o, token := remembering(t, m, `{"rules":`+slowMemory+`}`)
	if _, err := m.SetMemory(token, wearer, "Name: Ann"); err != nil {
		t.Fatal(err)
	}
	use := func(profile string) (*assistantscript.Script, func(context.Context) error) {
		t.Helper()
		script, err := assistantscript.Parse([]byte(`{"rules":` + slowMemory + `}`))
		if err != nil {
			t.Fatal(err)
		}
		restore, err := m.UseScenario(t.Context(), backend.Target{}, o.SessionID, script, &profile)
		if err != nil {
			t.Fatal(err)
		}
		wantMemory(t, m, token, profile)
		return script, restore
	}
	before := m.AssistantScript(o.SessionID)
	_, restore := use("Name: Ben")
	if err := restore(t.Context()); err != nil || m.AssistantScript(o.SessionID) != before {
		t.Errorf("got %v, or another script than before", err)
	}
	wantMemory(t, m, token, "Name: Ann")
	_, restore = use("Name: Ben")
	later, _ := use("Name: Nina")
	if err := restore(t.Context()); err != nil || m.AssistantScript(o.SessionID) != later {
		t.Errorf("got %v, or another script than the last", err)
	}
	wantMemory(t, m, token, "Name: Nina")
}

// A session that had no assistant has none again.
func TestUseScenario_RemovesTheScript(t *testing.T) {
	m := newLocal(t, t.TempDir(), &fakeTransports{}, nil)
	o := start(t, m, LocalRequest{Project: "com.example.app"})
	script, err := assistantscript.Parse([]byte(`{"rules":` + slowMemory + `}`))
	if err != nil {
		t.Fatal(err)
	}
	restore, err := m.UseScenario(t.Context(), backend.Target{}, o.SessionID, script, new("Name: Ben"))
	if err == nil {
		err = restore(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	folder := m.local.find(o.SessionID).folder()
	if _, err := os.Stat(filepath.Join(folder, scriptName)); m.AssistantScript(o.SessionID) != nil || !os.IsNotExist(err) {
		t.Errorf("the script stays: %v", err)
	}
	if m.local.find(o.SessionID).state.read().OwnMemory {
		t.Error("the session has a profile of its own")
	}
}

// hearing is the peer of a conversation. It keeps the events.
type hearing struct {
	host.Receiver
	events strings.Builder
}

func (h *hearing) SendText(event []byte) { h.events.Write(event) }

// A conversation that is under way goes on with the profile of a scenario. What was said before belongs to the profile
// with which it began.
func TestUseScenario_ReachesConversations(t *testing.T) {
	m := newLocal(t, t.TempDir(), &fakeTransports{}, nil)
	o, token := remembering(t, m, `{"rules":[
		{"when":{"contains":"who","memory":"Ben"},"reply":{"text":"Ben."}},
		{"when":{"contains":"tea"},"reply":{"text":"Noted.","remember":"Likes tea"}},
		{"when":{"contains":"milk"},"reply":{"text":"Noted.","remember":"Likes milk"}}]}`)
	if _, err := m.SetMemory(token, wearer, "Name: Ann"); err != nil {
		t.Fatal(err)
	}
	p := &hearing{}
	c, err := m.Converse(token, wearer, 24_000, p)
	if err != nil {
		t.Fatal(err)
	}
	c.Receive([]byte(`{"type":"session.update","session":{"type":"realtime","output_modalities":["text"]}}`))
	say := func(text string) {
		c.Receive([]byte(`{"type":"conversation.item.create","item":{"type":"message","role":"user","content":[
			{"type":"input_text","text":"` + text + `"}]}}`))
		c.Receive([]byte(`{"type":"response.create"}`))
	}
	say("tea")
	if _, err := m.UseScenario(t.Context(), backend.Target{}, o.SessionID, nil, new("Name: Ben")); err != nil {
		t.Fatal(err)
	}
	say("milk")
	say("who")
	if !strings.Contains(p.events.String(), `"text":"Ben."`) {
		t.Error("the conversation does not know the scenario's profile")
	}
	c.Leave("closed")
	wantMemory(t, m, token, "Name: Ben\nLikes milk")
	if got := m.local.profiles.Get("com.example.app", wearer).Text; got != "Name: Ann\nLikes tea" {
		t.Errorf("the stored profile is %q", got)
	}
}

// A recording begins with what the app knew when it attached.
func TestMemoryAt(t *testing.T) {
	dir := t.TempDir()
	m := New(Options{StateDir: dir, Backend: &fakeBackend{}, Transports: &fakeTransports{}, Endpoints: fakeEndpoints{}})
	stop := serve(t, m)
	o, token := remembering(t, m, `{"rules":`+slowMemory+`}`)
	want := func(attached int64, profile string, isKnown bool) {
		t.Helper()
		if got, known := m.MemoryAt(o.SessionID, attached); got != profile || known != isKnown {
			t.Errorf("after row %d: got %q, %v, want %q, %v", attached, got, known, profile, isKnown)
		}
	}
	first := m.local.find(o.SessionID).recalls.attached
	if first == 0 {
		t.Fatal("no row of the app that attached")
	}
	want(first, "", true)
	for _, text := range []string{"Name: Ann", "Name: Ben"} {
		if _, err := m.SetMemory(token, wearer, text); err != nil {
			t.Fatal(err)
		}
	}
	want(first, "", true)
	a, _ := admit(t, m, o, nil)
	t.Cleanup(a.Leave)
	second := m.local.find(o.SessionID).recalls.attached
	want(second, "", true) // not read yet
	wantMemory(t, m, token, "Name: Ben")
	want(second, "Name: Ben", true)
	want(first, "", true)
	stop()
	m = newLocal(t, dir, &fakeTransports{}, nil)
	if err := m.local.find(o.SessionID).wake(); err != nil {
		t.Fatal(err)
	}
	want(second, "", false)
	var r recalls
	for r.attached = range int64(maxRecalls + 2) {
		r.note("a")
	}
	if len(r.list) != maxRecalls || r.after != 1 {
		t.Errorf("kept %d profiles since row %d", len(r.list), r.after)
	}
}

// A browser session has no profile of its own, so it is not opened with a scenario that begins with one.
func TestOpen_RefusesMemoryOfAScenario(t *testing.T) {
	m, _, _ := newManager(t)
	dir := t.TempDir()
	for memory, want := range map[string]string{`"memory":"Name: Ann",`: "unsupported",
		"": "not_found"} { // this backend stores no scripts
		text := `{"scenario":1,"name":"x",` + memory + `"assistant":{"rules":` + slowMemory + `},"steps":[]}`
		if err := os.WriteFile(filepath.Join(dir, "scenario.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := m.Open(t.Context(), backend.Target{}, from(dir), Request{Project: "com.example.app",
			AssistantScript: "scenario.json"})
		if problem.CodeOf(err) != want {
			t.Errorf("with %s: got %v, want %q", memory, err, want)
		}
	}
}
