package session

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/broker"
	"github.com/service-dev/service/glasses/host"
	"github.com/service-dev/service/glasses/host/websocket"
)

// fakePeer is an app's connection that records the frames sent to it.
type fakePeer struct {
	mu     sync.Mutex
	frames []glasses.Frame
	code   websocket.Status
	got    chan struct{}
	// relieved is what Send returns.
	relieved chan struct{}
	// app, if set, answers barriers. calls, if set, returns the number of gateway calls that the app waits for.
	app   *App
	calls *atomic.Int32
}

func newPeer() *fakePeer { return &fakePeer{got: make(chan struct{}, 1024)} }

func (p *fakePeer) SendText(frame []byte) { p.Send(host.Text(frame)) }

func (p *fakePeer) Send(m host.Message) (relieved <-chan struct{}) {
	var f glasses.Frame
	if m.Kind == websocket.Binary {
		f, _, _ = glasses.ParseBinary(m.Data)
	} else {
		_ = json.Unmarshal(m.Data, &f)
	}
	p.mu.Lock()
	p.frames = append(p.frames, f)
	p.answer(f)
	p.mu.Unlock()
	select {
	case p.got <- struct{}{}:
	default:
	}
	return p.relieved
}

// answer answers a barrier once the app is attached. The caller holds mu.
func (p *fakePeer) answer(f glasses.Frame) {
	if f.Type != glasses.TypeBarrier || p.app == nil {
		return
	}
	payload := "{}"
	if p.calls != nil {
		payload = fmt.Sprintf(`{"calls":%d}`, p.calls.Load())
	}
	answer := fmt.Sprintf(`{"v":1,"type":"barrier","id":%q,"at":0,"payload":%s}`, f.ID, payload)
	go p.app.Handle(context.Background(), []byte(answer), false)
}

func (p *fakePeer) End(code websocket.Status, _ string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.code = code
	if p.app != nil {
		go p.app.Leave()
	}
}

// attached sets the app. It answers the barriers that arrived while the app was being attached.
func (p *fakePeer) attached(app *App) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.app = app
	for _, f := range p.frames {
		p.answer(f)
	}
	if p.code != 0 {
		go app.Leave()
	}
}

// In virtual time, a fault that disconnects the app returns after the app has reconnected, so that the next step finds
// it attached.
func TestFault_WaitsForDroppedApp(t *testing.T) {
	m := newLocal(t, t.TempDir(), &fakeTransports{}, nil)
	o := start(t, m, LocalRequest{Project: "com.example.app", Clock: "virtual"})
	first, _ := admit(t, m, o, nil)
	seen := first.rows.Last
	returned := make(chan error, 1)
	go func() {
		_, err := m.Control(t.Context(), backend.Target{}, o.SessionID, glasses.SimFault, glasses.Fault{DropApp: true}, nil)
		returned <- err
	}()
	<-first.gone
	select {
	case err := <-returned:
		t.Fatalf("the fault returned before the app was attached again: %v", err)
	default:
	}
	_, back := admit(t, m, o, &seen)
	if err := <-returned; err != nil {
		t.Fatal(err)
	}
	want := "glasses.attached app.attached fault app.detached app.attached"
	if got := types(rowsOf(t, m, o.SessionID)); got != want {
		t.Errorf("rows %s\nwant %s", got, want)
	}
	if back.code != 0 {
		t.Errorf("the reconnected app was disconnected too: %d", back.code)
	}
}

// wait returns the first matching frame, among those received so far and later ones.
func (p *fakePeer) wait(t *testing.T, what string, fits func(glasses.Frame) bool) glasses.Frame {
	t.Helper()
	late := time.After(10 * time.Second)
	for {
		p.mu.Lock()
		for _, f := range p.frames {
			if fits(f) {
				p.mu.Unlock()
				return f
			}
		}
		p.mu.Unlock()
		select {
		case <-p.got:
		case <-late:
			t.Fatalf("%s did not arrive, only %v", what, p.types())
		}
	}
}

func (p *fakePeer) types() (list []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.frames {
		list = append(list, f.Type+" "+f.ID+" "+string(f.Payload))
	}
	return list
}

func (p *fakePeer) result(t *testing.T, id string) glasses.Result {
	t.Helper()
	f := p.wait(t, "the result of "+id, func(f glasses.Frame) bool { return f.Type == glasses.TypeResult && f.ID == id })
	res, err := glasses.ParseResult(f.Payload)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func (p *fakePeer) ack(t *testing.T, id string) int64 {
	t.Helper()
	f := p.wait(t, "the acknowledgement of "+id,
		func(f glasses.Frame) bool { return f.Type == glasses.TypeAck && f.ID == id })
	var ack glasses.Ack
	_ = json.Unmarshal(f.Payload, &ack)
	return ack.Seq
}

func (p *fakePeer) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frames = nil
}

// tap simulates a tap by the wearer.
func tap(t *testing.T, m *Manager, id string) {
	t.Helper()
	_, err := m.Control(t.Context(), backend.Target{}, id, glasses.SimInput, glasses.Input{Kind: "tap"}, nil)
	if err != nil {
		t.Fatal(err)
	}
}

func admit(t *testing.T, m *Manager, o Opened, since *int64) (*App, *fakePeer) {
	t.Helper()
	p := newPeer()
	return attachPeer(t, m, o, since, p), p
}

// attachPeer attaches an app whose connection is p.
func attachPeer(t *testing.T, m *Manager, o Opened, since *int64, p *fakePeer) *App {
	t.Helper()
	secret, err := os.ReadFile(o.AppTokenFile)
	if err != nil {
		t.Fatal(err)
	}
	a, err := m.Attach(o.SessionID,
		glasses.Hello{Secret: string(secret), App: glasses.AppInfo{Name: "app"}, Barrier: true, Gateway: true,
			Since: since}, "h-1", p)
	if err != nil {
		t.Fatal(err)
	}
	p.attached(a)
	return a
}

func send(t *testing.T, a *App, typ, id, payload string) {
	t.Helper()
	a.Handle(t.Context(), []byte(fmt.Sprintf(`{"v":1,"type":%q,"id":%q,"at":5,"payload":%s}`, typ, id, payload)), false)
}

const hello = `{"tree":{"type":"text","text":"hello"}}`

// Every frame carries the session's time, including frames about the log.
func TestFrames_CarrySessionTime(t *testing.T) {
	m := newLocal(t, t.TempDir(), &fakeTransports{}, nil)
	o := start(t, m, LocalRequest{Clock: "virtual"})
	a, p := admit(t, m, o, nil)
	p.wait(t, "the cursor of both arrivals", func(f glasses.Frame) bool {
		return f.Type == glasses.TypeCursor && strings.Contains(string(f.Payload), `"seq":2`)
	})
	if _, _, err := m.Advance(t.Context(), o.SessionID, 1234); err != nil {
		t.Fatal(err)
	}
	p.reset()
	send(t, a, glasses.TypeDisplayShow, "a-1", hello)
	send(t, a, glasses.TypeDisplayShow, "a-1", `{}`)
	send(t, a, glasses.TypeResult, "a-2", `{}`)
	p.ack(t, "a-1")
	p.wait(t, "the cursor", func(f glasses.Frame) bool { return f.Type == glasses.TypeCursor })
	p.wait(t, "the refusal", func(f glasses.Frame) bool { return f.Type == glasses.TypeError && f.ID == "a-2" })
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.frames {
		if f.At != 1234 {
			t.Errorf("%s %s is at %d, want 1234", f.Type, f.ID, f.At)
		}
	}
}

// TestSession_RelaysFrames checks the guarantees for an app, in virtual and real time. The backend's relay gives the
// same guarantees.
func TestSession_RelaysFrames(t *testing.T) {
	for _, clock := range []string{backend.ClockReal, backend.ClockVirtual} {
		t.Run(clock, func(t *testing.T) {
			m := newLocal(t, t.TempDir(), &fakeTransports{}, nil)
			o := start(t, m, LocalRequest{Project: "com.example.app", Clock: clock})
			a, p := admit(t, m, o, nil)
			var welcome glasses.Frame
			_ = json.Unmarshal(a.Welcome, &welcome)
			if !strings.Contains(string(welcome.Payload), `"link":"connected"`) || welcome.ID != "h-1" {
				t.Errorf("welcome %s", a.Welcome)
			}
			send(t, a, glasses.TypeDisplayShow, "a-1", hello)
			if res := p.result(t, "a-1"); !res.OK {
				t.Errorf("result %+v", res)
			}
			seq := p.ack(t, "a-1")
			p.reset()
			send(t, a, glasses.TypeDisplayShow, "a-1", `{ "tree": {"type":"text","text":"hello"} }`)
			if again := p.ack(t, "a-1"); again != seq {
				t.Errorf("the repeated frame is row %d, want %d", again, seq)
			}
			send(t, a, glasses.TypeDisplayShow, "a-1", `{"tree":{"type":"text","text":"other"}}`)
			f := p.wait(t, "a refusal", func(f glasses.Frame) bool { return f.Type == glasses.TypeError })
			if !strings.Contains(string(f.Payload), glasses.CodeIDReused) {
				t.Errorf("refused with %s, want id_reused", f.Payload)
			}
			send(t, a, glasses.TypeDisplayShow, "a-2", `{"tree":{}}`)
			if res := p.result(t, "a-2"); res.Error == nil || res.Error.Code != glasses.CodeBadPayload {
				t.Errorf("a bad payload: %+v, want bad_payload", res)
			}
			send(t, a, "com.example.score", "a-3", `{"points":3}`)
			p.ack(t, "a-3")
			send(t, a, glasses.TypeResult, "a-4", `{"ok":true}`)
			p.wait(t, "a refusal", func(f glasses.Frame) bool { return f.Type == glasses.TypeError && f.ID == "a-4" })
			tap(t, m, o.SessionID)
			p.wait(t, "the input", func(f glasses.Frame) bool { return f.Type == glasses.TypeInput })
			a.Leave()
			rows := rowsOf(t, m, o.SessionID)
			want := "glasses.attached app.attached display.show result display.show result com.example.score input app.detached"
			if types(rows) != want {
				t.Errorf("rows %s\nwant %s", types(rows), want)
			}
			for i, e := range rows {
				if e.Seq != int64(i+1) {
					t.Errorf("row %d has seq %d", i, e.Seq)
				}
			}
			if rows[3].Chip != glasses.ChipDisplay || rows[3].ID != "a-1" || rows[5].Chip != glasses.ChipErrors ||
				rows[5].Sender != glasses.SenderService || rows[6].Chip != glasses.ChipCustom {
				t.Errorf("rows %+v", rows)
			}
			if clock == backend.ClockVirtual && (rows[8].At != 0 || rows[0].ID != "svc-1" || rows[7].ID != "g-8") {
				t.Errorf("rows in virtual time: %+v", rows)
			}
		})
	}
}

func TestReplay_StartsAfterCursor(t *testing.T) {
	m := newLocal(t, t.TempDir(), &fakeTransports{}, nil)
	o := start(t, m, LocalRequest{Project: "com.example.app", Clock: "virtual"})
	a, p := admit(t, m, o, nil)
	send(t, a, glasses.TypeDisplayShow, "a-1", hello)
	seq := p.ack(t, "a-1")
	a.Leave()
	for range 3 {
		tap(t, m, o.SessionID)
	}
	b, _ := admit(t, m, o, &seq)
	var got []string
	err := b.Replay(t.Context(), func(data []byte) error {
		var f glasses.Frame
		if err := json.Unmarshal(data, &f); err != nil {
			return err
		}
		got = append(got, fmt.Sprintf("%s %d", f.Type, f.Seq))
		return nil
	})
	if want := "result 4 input 6 input 7 input 8"; err != nil || strings.Join(got, " ") != want {
		t.Errorf("replayed %v, error %v; want %s", got, err, want)
	}
}

func TestCommand_TimesOutOnSessionClock(t *testing.T) {
	tr := &fakeTransports{answer: func(glasses.Frame) (glasses.Result, bool) { return glasses.Result{}, false }}
	m := newLocal(t, t.TempDir(), tr, nil)
	o := start(t, m, LocalRequest{Project: "com.example.app", Clock: "virtual"})
	a, p := admit(t, m, o, nil)
	send(t, a, glasses.TypeDisplayShow, "a-1", hello)
	send(t, a, glasses.TypeClockSleep, "a-2", `{"ms":60000}`)
	now, settled, err := m.Advance(t.Context(), o.SessionID, 20_000)
	if err != nil || now != 20_000 || !settled {
		t.Fatalf("Advance: now %d, settled %v, error %v; want 20,000 and settled", now, settled, err)
	}
	if res := p.result(t, "a-1"); res.Error == nil || res.Error.Code != glasses.CodeTimeout {
		t.Errorf("result %+v", res)
	}
	rows := rowsOf(t, m, o.SessionID)
	last := rows[len(rows)-1]
	if last.ID != "a-1" || last.At != broker.CommandWait.Milliseconds() || last.Sender != glasses.SenderService {
		t.Errorf("last row %+v, want a timeout from the service", last)
	}
}

func TestGlasses_ContinueFromSnapshot(t *testing.T) {
	silent := false
	tr := &fakeTransports{}
	m := newLocal(t, t.TempDir(), tr, nil)
	o := start(t, m, LocalRequest{Project: "com.example.app"})
	a, p := admit(t, m, o, nil)
	send(t, a, glasses.TypeDisplayShow, "a-1", hello)
	p.result(t, "a-1")
	tr.last().mu.Lock()
	silent = true
	tr.last().answer = func(glasses.Frame) (glasses.Result, bool) { return glasses.Result{OK: true}, !silent }
	tr.last().mu.Unlock()
	send(t, a, glasses.TypeDisplayClear, "a-2", `{}`)
	p.ack(t, "a-2")
	_ = tr.last().Close()
	if res := p.result(t, "a-2"); res.Error == nil || res.Error.Code != glasses.CodeNotConnected {
		t.Errorf("a command in progress: %+v, want not_connected", res)
	}
	p.wait(t, "the link to be lost", func(f glasses.Frame) bool {
		return f.Type == glasses.TypeLink && strings.Contains(string(f.Payload), "disconnected")
	})
	p.wait(t, "the link to be restored", func(f glasses.Frame) bool {
		return f.Type == glasses.TypeLink && strings.Contains(string(f.Payload), `"connected"`)
	})
	if _, err := m.Control(t.Context(), backend.Target{}, o.SessionID, glasses.SimState, nil, nil); err != nil {
		t.Fatal(err)
	}
	tr.mu.Lock()
	open := tr.opened[len(tr.opened)-1]
	tr.mu.Unlock()
	if open.Snapshot == nil || open.Snapshot.View.Tree == nil || open.Snapshot.View.Tree.Text != "hello" {
		t.Errorf("reopened with %+v, want the earlier tree", open)
	}
	want := "glasses.attached app.attached display.show result display.clear result glasses.detached glasses.attached"
	if got := types(rowsOf(t, m, o.SessionID)); got != want {
		t.Errorf("rows %s\nwant %s", got, want)
	}
}

// Glasses whose stream piles up for an app are delayed briefly, so that fewer frames are dropped.
func TestStream_DelaysGlassesWhileAppIsBehind(t *testing.T) {
	tr := &fakeTransports{}
	m := newLocal(t, t.TempDir(), tr, nil)
	o := start(t, m, LocalRequest{Project: "com.example.app"})
	p := newPeer()
	p.relieved = make(chan struct{}) // never closed
	attachPeer(t, m, o, nil, p)
	began := time.Now()
	tr.last().emit(glasses.TypeMotion, glasses.Motion{})
	tr.last().emit(glasses.TypeInput, glasses.Input{Kind: "tap"})
	p.wait(t, "the input", func(f glasses.Frame) bool { return f.Type == glasses.TypeInput })
	if took := time.Since(began); took < host.MaxPressure {
		t.Errorf("the next frame arrived after %v, want %v", took, host.MaxPressure)
	}
}

// Frames that the session refuses or ignores are limited like others. An answer to one of its barriers never waits.
func TestHandle_LimitsRefusedAndIgnoredFrames(t *testing.T) {
	m := newLocal(t, t.TempDir(), &fakeTransports{}, nil)
	o := start(t, m, LocalRequest{Project: "com.example.app"})
	a, p := admit(t, m, o, nil)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for range 3600 { // uses an hour's frames
		a.session.rates.Wait(over, glasses.SenderApp, host.Rate{PerSecond: 1, Burst: 1})
	}
	for name, frame := range map[string]struct {
		data   string
		binary bool
	}{
		"binary":    {"noise", true},
		"malformed": {"noise", false},
		"barrier":   {`{"v":1,"type":"barrier","id":"unasked","at":0,"payload":{}}`, false},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if a.Handle(ctx, []byte(frame.data), frame.binary); ctx.Err() == nil {
			t.Errorf("%s: the frame did not wait", name)
		}
		cancel()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, ok := a.askBarrier(ctx); !ok {
		t.Errorf("the answer to a barrier waited; frames %v", p.types())
	}
}

// Sound reaches the glasses. Other binary frames of an app, and sound that is not valid, are refused.
func TestHandle_PassesSoundToGlasses(t *testing.T) {
	tr := &fakeTransports{}
	m := newLocal(t, t.TempDir(), tr, nil)
	o := start(t, m, LocalRequest{Project: "com.example.app"})
	a, p := admit(t, m, o, nil)
	const chunk = `{"playback":"a-1"}`
	for id, frame := range map[string]struct {
		typ, payload string
		bytes        int
	}{
		"bad-1": {glasses.TypeAudioChunk, chunk, 2}, "bad-2": {glasses.TypeMedia, chunk, 2},
		"bad-3": {glasses.TypeDisplayClear, `{}`, 2}, "bad-4": {glasses.TypePlaybackChunk, `{}`, 2},
		"bad-5": {glasses.TypePlaybackChunk, `{"playback":"two words"}`, 2},
		"bad-6": {glasses.TypePlaybackChunk, chunk, 0}, "bad-7": {glasses.TypePlaybackChunk, chunk, 3},
		"bad-8": {glasses.TypePlaybackChunk, chunk, glasses.MaxPlaybackChunk + 2},
		"good":  {glasses.TypePlaybackChunk, chunk, glasses.MaxPlaybackChunk},
	} {
		data, err := glasses.EncodeBinary(glasses.Frame{V: 1, Type: frame.typ, ID: id,
			Payload: json.RawMessage(frame.payload)}, make([]byte, frame.bytes))
		if err != nil {
			t.Fatal(err)
		}
		a.Handle(t.Context(), data, true)
		if id == "good" {
			continue
		}
		f := p.wait(t, "a refusal", func(f glasses.Frame) bool { return f.Type == glasses.TypeError && f.ID == id })
		if !strings.Contains(string(f.Payload), glasses.CodeBadFrame) {
			t.Errorf("%s was refused with %s", id, f.Payload)
		}
	}
	send(t, a, glasses.TypePlaybackChunk, "text", chunk)
	p.wait(t, "a refusal", func(f glasses.Frame) bool { return f.Type == glasses.TypeError && f.ID == "text" })
	g := tr.last()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.chunks != 1 {
		t.Errorf("%d chunks reached the glasses, want 1", g.chunks)
	}
}
