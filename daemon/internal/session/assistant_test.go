package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/assistantscript"
	"github.com/service-dev/service/glasses/host"
)

const listScript = `{"rules": [
  {"when": {"contains": "milk"}, "reply": {"toolCall": {"name": "add_item", "arguments": {"item": "milk"}}}},
  {"when": {"contains": "slow"}, "reply": {"text": "At last.", "delayMs": 1000}},
  {"when": {"contains": "long"}, "reply": {"toolCall": {"name": "add_item", "arguments": {"item": "` +
	`LONG"}}}}]}`

// scripted opens a session with listScript and attaches an app that counts its calls.
func scripted(t *testing.T, m *Manager, clock string) (Opened, *App, *fakePeer, glasses.Gateway) {
	t.Helper()
	dir := t.TempDir()
	long := strings.Replace(listScript, "LONG", strings.Repeat("x", glasses.MaxToolArguments), 1)
	if err := os.WriteFile(filepath.Join(dir, "script.json"), []byte(long), 0o600); err != nil {
		t.Fatal(err)
	}
	o, err := m.StartLocal(t.Context(), from(dir),
		LocalRequest{Project: "com.example.app", Clock: clock, AssistantScript: "script.json"})
	if err != nil {
		t.Fatal(err)
	}
	a, p := admit(t, m, o, nil)
	p.mu.Lock()
	p.calls = &atomic.Int32{}
	p.mu.Unlock()
	w := welcome(t, a)
	if w.Gateway == nil || w.Gateway.URL != "http://127.0.0.1:1/v1" || !strings.HasPrefix(w.Gateway.Token, "sgt_") {
		t.Fatalf("%+v", w.Gateway)
	}
	return o, a, p, *w.Gateway
}

func chat(text string) []byte {
	return []byte(`{"model":"assistant","messages":[{"role":"user","content":"` + text + `"}],` +
		`"tools":[{"type":"function","function":{"name":"add_item"}}]}`)
}

func failure(err error) string {
	var f *assistantscript.Failure
	if errors.As(err, &f) {
		return f.Code
	}
	return "none"
}

func TestAssistant_CallsOfToolsAreInTheLog(t *testing.T) {
	m := newLocal(t, t.TempDir(), &fakeTransports{}, nil)
	o, a, _, g := scripted(t, m, backend.ClockVirtual)
	defer a.Leave()
	for _, text := range []string{"buy milk", "long"} {
		if reply, err := m.AskAssistant(t.Context(), g.Token, "", chat(text)); err != nil || len(reply.Calls) != 1 {
			t.Fatalf("%+v %v", reply, err)
		}
	}
	rows := rowsOf(t, m, o.SessionID)
	last := rows[len(rows)-2:]
	if e := last[0]; e.Type != glasses.RowToolCalled || e.Sender != glasses.SenderService || e.Chip != glasses.ChipVoice ||
		string(e.Payload) != `{"name":"add_item","arguments":{"item":"milk"}}` {
		t.Errorf("%+v %s", e, e.Payload)
	}
	if e := last[1]; string(e.Payload) != `{"name":"add_item","arguments":null}` {
		t.Errorf("arguments over the limit are logged as %.100s, want null", e.Payload)
	}
}

func TestAssistant_DelayPassesOnTheSessionsClock(t *testing.T) {
	m := newLocal(t, t.TempDir(), &fakeTransports{}, nil)
	o, a, p, g := scripted(t, m, backend.ClockVirtual)
	defer a.Leave()
	p.calls.Store(1)
	answered := make(chan AssistantReply, 1)
	go func() {
		reply, err := m.AskAssistant(context.Background(), g.Token, "", chat("slow"))
		if err != nil {
			t.Error(err)
		}
		p.calls.Store(0)
		answered <- reply
	}()
	advance := func(ms, want int64) {
		t.Helper()
		if now, settled, err := m.Advance(t.Context(), o.SessionID, ms); now != want || !settled || err != nil {
			t.Errorf("Advance: now %d, settled %v, error %v; want the requested time, settled", now, settled, err)
		}
	}
	advance(999, 999)
	select {
	case <-answered:
		t.Error("the answer came before it was due")
	default:
	}
	advance(1, 1000)
	if reply := <-answered; reply.Text != "At last." || reply.Created != 1 || reply.ID != "chatcmpl-1" {
		t.Errorf("%+v", reply)
	}
}

// An app that loses its connection still waits for the answer to its call, and reacts to it after it has attached
// again.
func TestAssistant_CallOutlivesADroppedApp(t *testing.T) {
	m := newLocal(t, t.TempDir(), &fakeTransports{}, nil)
	o, a, p, g := scripted(t, m, backend.ClockVirtual)
	p.calls.Store(1)
	answered := make(chan error, 1)
	go func() {
		_, err := m.AskAssistant(context.Background(), g.Token, "", chat("slow"))
		answered <- err
	}()
	for m.local.find(o.SessionID).waitingCalls(a) == 0 {
		runtime.Gosched()
	}
	dropped := make(chan error, 1)
	go func() {
		_, err := m.Control(t.Context(), backend.Target{}, o.SessionID, glasses.SimFault, glasses.Fault{DropApp: true}, nil)
		dropped <- err
	}()
	<-a.gone
	back := newPeer()
	back.calls = p.calls
	seen := a.rows.Last
	a = attachPeer(t, m, o, &seen, back)
	defer a.Leave()
	if err := <-dropped; err != nil {
		t.Fatal(err)
	}
	if now, settled, err := m.Advance(t.Context(), o.SessionID, 999); now != 999 || !settled || err != nil {
		t.Errorf("before the answer: now %d, settled %v, error %v; want 999, settled", now, settled, err)
	}
	advanced := make(chan bool, 1)
	go func() {
		_, settled, _ := m.Advance(t.Context(), o.SessionID, 5000)
		advanced <- settled
	}()
	if err := <-answered; err != nil {
		t.Error(err)
	}
	barriers := 0
	back.wait(t, "barriers while the app reacts", func(f glasses.Frame) bool {
		if f.Type == glasses.TypeBarrier {
			barriers++
		}
		return barriers >= 8
	})
	if s, err := m.Get(t.Context(), backend.Target{}, o.SessionID); err != nil || s.NowMs != 1000 {
		t.Errorf("while the app reacts to the answer the clock is at %d (error %v), want 1000", s.NowMs, err)
	}
	p.calls.Store(0)
	if !<-advanced {
		t.Error("the app did not settle after the answer")
	}
}

// A request that the app has sent may still be in transit. Time must not pass before it arrives.
func TestAssistant_TimeWaitsForACallOnItsWay(t *testing.T) {
	m := newLocal(t, t.TempDir(), &fakeTransports{}, nil)
	o, a, p, g := scripted(t, m, backend.ClockVirtual)
	defer a.Leave()
	send(t, a, glasses.TypeDisplayShow, "a-1", hello) // its result is a frame to which the app may react
	p.calls.Store(1)
	advanced := make(chan int64, 1)
	go func() {
		now, settled, err := m.Advance(context.Background(), o.SessionID, 100)
		if !settled || err != nil {
			t.Errorf("Advance: settled %v, error %v; want it settled", settled, err)
		}
		advanced <- now
	}()
	barriers := 0
	p.wait(t, "the third barrier", func(f glasses.Frame) bool {
		if f.Type == glasses.TypeBarrier {
			barriers++
		}
		return barriers >= 3
	})
	if s, err := m.Get(t.Context(), backend.Target{}, o.SessionID); err != nil || s.NowMs != 0 {
		t.Errorf("the clock is at %d (error %v), want 0", s.NowMs, err)
	}
	if _, err := m.AskAssistant(t.Context(), g.Token, "", chat("milk")); err != nil {
		t.Error(err)
	}
	p.calls.Store(0)
	if now := <-advanced; now != 100 {
		t.Errorf("now %d", now)
	}
	for _, e := range rowsOf(t, m, o.SessionID) {
		if e.Type == glasses.RowToolCalled && e.At != 0 {
			t.Errorf("a tool was called at %d, want 0", e.At)
		}
	}
}

func TestAssistant_ScriptMayComeLaterAndStays(t *testing.T) {
	dir, work := t.TempDir(), t.TempDir()
	m := New(Options{StateDir: dir, Transports: &fakeTransports{}, Endpoints: fakeEndpoints{}})
	stop := serve(t, m)
	o := start(t, m, LocalRequest{Project: "com.example.app"})
	a, p := admit(t, m, o, nil)
	if w := welcome(t, a); w.Gateway != nil {
		t.Errorf("%+v", w.Gateway)
	}
	file := `{"scenario":1,"name":"x","assistant":{"rules":[{"when":{"always":true},"reply":{"text":"Hi"}}]},"steps":[]}`
	path := filepath.Join(work, "scenario.json")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	again := start(t, m, LocalRequest{Project: "com.example.app", AssistantScript: path})
	if again.SessionID != o.SessionID {
		t.Fatalf("got session %+v, want the first one", again)
	}
	f := p.wait(t, "a token", func(f glasses.Frame) bool { return f.Type == glasses.TypeGatewayToken })
	var g glasses.Gateway
	if err := json.Unmarshal(f.Payload, &g); err != nil {
		t.Fatal(err)
	}
	if reply, err := m.AskAssistant(t.Context(), g.Token, "", chat("hello")); err != nil || reply.Text != "Hi" {
		t.Errorf("%+v %v", reply, err)
	}
	a.Leave()
	stop()
	m = newLocal(t, dir, &fakeTransports{}, nil)
	a, _ = admit(t, m, o, nil)
	w := welcome(t, a)
	if w.Gateway == nil {
		t.Fatal("the script was lost in a restart")
	}
	if _, err := m.AskAssistant(t.Context(), g.Token, "", chat("hello")); failure(err) != "invalid_key" {
		t.Errorf("a token of the previous daemon: %v, want invalid_key", err)
	}
	if reply, err := m.AskAssistant(t.Context(), w.Gateway.Token, "", chat("hello")); err != nil || reply.Text != "Hi" {
		t.Errorf("%+v %v", reply, err)
	}
	a.Leave()
}

func TestGatewayToken_IsRenewedAndEnds(t *testing.T) {
	var now atomic.Int64
	now.Store(1_000_000)
	m := newLocal(t, t.TempDir(), &fakeTransports{}, func() time.Time { return time.Unix(now.Load(), 0) })
	o, a, p, first := scripted(t, m, backend.ClockReal)
	s := m.local.find(o.SessionID)
	s.RenewTokens(t.Context(), true)
	now.Add(int64((glasses.GatewayTokenLife - glasses.GatewayTokenRenew).Seconds()) + 1)
	s.RenewTokens(t.Context(), true)
	f := p.wait(t, "another token", func(f glasses.Frame) bool { return f.Type == glasses.TypeGatewayToken })
	var second glasses.Gateway
	if err := json.Unmarshal(f.Payload, &second); err != nil || second.Token == first.Token {
		t.Fatalf("%s %v", f.Payload, err)
	}
	for _, token := range []string{first.Token, second.Token} {
		if !m.OpensAssistant(token) {
			t.Error("a token expired early")
		}
	}
	now.Add(int64(glasses.GatewayTokenRenew.Seconds()))
	if m.OpensAssistant(first.Token) || !m.OpensAssistant(second.Token) || m.OpensAssistant("") {
		t.Error("want the first token expired and the second one valid")
	}
	if _, err := m.AskAssistant(t.Context(), first.Token, "", chat("milk")); failure(err) != "invalid_key" {
		t.Errorf("%v", err)
	}
	a.Leave()
}

func TestAssistant_EndOfTheSessionCutsCalls(t *testing.T) {
	m := newLocal(t, t.TempDir(), &fakeTransports{}, nil)
	o, a, _, g := scripted(t, m, backend.ClockVirtual)
	ended := make(chan error, 1)
	go func() {
		_, err := m.AskAssistant(context.Background(), g.Token, "", chat("slow"))
		ended <- err
	}()
	for m.local.find(o.SessionID).waitingCalls(a) == 0 {
		runtime.Gosched()
	}
	if _, err := m.Close(t.Context(), backend.Target{}, o.SessionID); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; failure(err) != "invalid_key" {
		t.Errorf("%v", err)
	}
	if m.OpensAssistant(g.Token) {
		t.Error("the token is still valid after its session closed")
	}
}

// No file and no line of the log contains a token, not even after a request that fails.
func TestGatewayToken_IsWrittenNowhere(t *testing.T) {
	dir := t.TempDir()
	var logged lockedBuffer
	m := New(Options{StateDir: dir, Transports: &fakeTransports{}, Endpoints: fakeEndpoints{},
		Log: slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	stop := serve(t, m)
	o, a, _, g := scripted(t, m, backend.ClockVirtual)
	_, _ = m.AskAssistant(t.Context(), g.Token, "", []byte("{"))
	_, _ = m.AskAssistant(t.Context(), g.Token+"x", "", chat("milk"))
	_ = rowsOf(t, m, o.SessionID)
	a.Leave()
	stop()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte(g.Token)) {
			t.Errorf("%s contains the token", path)
		}
		return err
	})
	if err != nil || strings.Contains(logged.String(), g.Token) {
		t.Errorf("reading the files: %v; want no error and no token in the log", err)
	}
}

type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// listed is the peer of a conversation. It adds its name to a list for each event.
type listed struct {
	host.Receiver
	name string
	list *[]string
}

func (l listed) SendText([]byte) { *l.list = append(*l.list, l.name) }

func TestAssistant_ConversationsTakeTurnsInOrder(t *testing.T) {
	m := newLocal(t, t.TempDir(), &fakeTransports{}, nil)
	o, a, _, g := scripted(t, m, backend.ClockVirtual)
	defer a.Leave()
	for range 10 {
		var list []string
		var open []*Conversation
		for _, name := range []string{"first", "second"} {
			c, err := m.Converse(g.Token, "", 16000, listed{name: name, list: &list})
			if err != nil {
				t.Fatal(err)
			}
			c.Receive([]byte(`{"type":"conversation.item.create","item":{"type":"message","role":"user",` +
				`"content":[{"type":"input_text","text":"slow"}]}}`))
			c.Receive([]byte(`{"type":"response.create"}`))
			open = append(open, c)
		}
		s := open[0].session
		s.Mu.Lock()
		list = nil
		s.advanceConversations(s.state.nowMs() + 10_000)
		s.Mu.Unlock()
		if got := slices.Compact(list); !slices.Equal(got, []string{"first", "second"}) {
			t.Fatalf("session %s sent events to %v, want first, then second", o.SessionID, got)
		}
		for _, c := range open {
			c.Leave("closed")
		}
	}
}
