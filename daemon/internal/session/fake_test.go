package session

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/proto/backendapi"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeTransports starts fake glasses, which answer every command immediately and keep virtual time.
type fakeTransports struct {
	mu     sync.Mutex
	err    error
	opened []backend.TransportOpen
	given  []*fakeGlasses
	// answer, if set, returns the result of a command; false means that the command gets no result.
	answer func(f glasses.Frame) (glasses.Result, bool)
	// begun, if set, receives each pair of glasses when it starts.
	begun chan *fakeGlasses
	hang  chan struct{} // if set, glasses do not start, and each attempt sends a value to it
	added map[string]backend.Transport
}

func (t *fakeTransports) Attach(ctx context.Context, name string,
	open backend.TransportOpen) (backend.Glasses, error) {
	if _, err := t.Transport(name); err != nil {
		return nil, err
	}
	if t.hang != nil {
		t.hang <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return nil, t.err
	}
	g := &fakeGlasses{out: make(chan message, 4096), gone: make(chan struct{}), now: open.NowMs, open: open,
		stands: make(chan glasses.Standing, 64),
		state:  glasses.FreshState(), answer: t.answer}
	g.view.Focus = -1
	if open.Snapshot != nil {
		g.state, g.view = open.Snapshot.State, open.Snapshot.View
	}
	t.opened, t.given = append(t.opened, open), append(t.given, g)
	if t.begun != nil {
		t.begun <- g
	}
	return g, nil
}

func (t *fakeTransports) Transport(name string) (backend.Transport, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if name == localSim {
		return backend.Transport{Name: name, VirtualClock: true}, nil
	}
	if known, ok := t.added[name]; ok {
		return known, nil
	}
	return backend.Transport{}, &problem.Error{Code: problem.CodeUnknownTransport, Message: "no " + name}
}

func (t *fakeTransports) last() *fakeGlasses {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.given[len(t.given)-1]
}

type message struct {
	data   []byte
	binary bool
}

type fakeGlasses struct {
	out  chan message
	gone chan struct{}
	once sync.Once
	open backend.TransportOpen // how they were started

	mu     sync.Mutex
	now    int64
	stands chan glasses.Standing // receives each sim.standing
	state  glasses.State
	view   glasses.View
	answer func(f glasses.Frame) (glasses.Result, bool)
	events int
	sleeps map[string]int64
	told   backend.PairPanel
	chunks int // of sound from apps
}

func (g *fakeGlasses) SetPanel(p backend.PairPanel) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.told = p
	return nil
}

// panel returns the last panel settings sent to the glasses.
func (g *fakeGlasses) panel() backend.PairPanel {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.told
}

func (g *fakeGlasses) Close() error { g.once.Do(func() { close(g.gone) }); return nil }

func (g *fakeGlasses) Receive(ctx context.Context) ([]byte, bool, error) {
	select {
	case m := <-g.out:
		return m.data, m.binary, nil
	default:
	}
	select {
	case m := <-g.out:
		return m.data, m.binary, nil
	case <-g.gone:
		return nil, false, errors.New("the adapter is gone")
	case <-ctx.Done():
		return nil, false, ctx.Err()
	}
}

func (g *fakeGlasses) say(typ, id string, payload any) {
	f, err := glasses.New(typ, id, g.now, payload)
	if err != nil {
		panic(err)
	}
	data, _ := f.Encode()
	g.out <- message{data, false}
}

// emit sends an event. An event about the state also changes the state of the glasses.
func (g *fakeGlasses) emit(typ string, payload any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.events++
	if data, err := json.Marshal(payload); err == nil {
		g.state, _ = g.state.AfterEvent(typ, data)
	}
	g.say(typ, "g-"+string(rune('0'+g.events)), payload)
}

func (g *fakeGlasses) Send(data []byte, binary bool) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if binary {
		f, _, err := glasses.ParseBinary(data)
		if err != nil {
			return err
		}
		if f.Type == glasses.TypePlaybackChunk {
			g.chunks++
			return nil
		}
		g.say(glasses.TypeResult, f.ID, glasses.Result{OK: true, State: &g.state, View: &g.view})
		return nil
	}
	f, err := glasses.Parse(data)
	if err != nil {
		return err
	}
	res := glasses.Result{OK: true}
	switch {
	case f.Type == glasses.SimAdvance:
		res.Clock = g.advance(f)
	case f.Type == glasses.SimInput:
		var in glasses.Input
		_ = json.Unmarshal(f.Payload, &in)
		g.events++
		g.say(glasses.TypeInput, "g-"+string(rune('0'+g.events)), in)
		res.State, res.View = &g.state, &g.view
	case glasses.IsControl(f.Type):
		if f.Type == glasses.SimFault {
			g.events++
			g.say(glasses.TypeFault, "g-"+string(rune('0'+g.events)), f.Payload)
		}
		if f.Type == glasses.SimStanding {
			var s glasses.Standing
			_ = json.Unmarshal(f.Payload, &s)
			g.stands <- s
		}
		res.State, res.View = &g.state, &g.view
	case g.answer != nil:
		r, ok := g.answer(f)
		if !ok {
			return nil
		}
		res = r
	case f.Type == glasses.TypeClockSleep:
		var p glasses.Sleep
		_ = json.Unmarshal(f.Payload, &p)
		if g.sleeps == nil {
			g.sleeps = map[string]int64{}
		}
		g.sleeps[f.ID] = g.now + p.Ms
		return nil
	case f.Type == glasses.TypePhrasesAnnounce:
		var p glasses.Announce
		_ = json.Unmarshal(f.Payload, &p)
		g.state.Phrases = p.Phrases
	case f.Type == glasses.TypeDisplayShow:
		show, _ := glasses.ParseShow(f.Payload)
		g.view = glasses.View{Tree: &show.Tree}
	}
	g.say(glasses.TypeResult, f.ID, res)
	return nil
}

// advance moves time to the end of the next sleep, but not beyond the requested time.
func (g *fakeGlasses) advance(f glasses.Frame) *glasses.Clock {
	var p glasses.Advance
	_ = json.Unmarshal(f.Payload, &p)
	next, who := p.ToMs, ""
	for id, at := range g.sleeps {
		if at <= next {
			next, who = at, id
		}
	}
	g.now = max(g.now, next)
	if who != "" {
		delete(g.sleeps, who)
		g.say(glasses.TypeResult, who, glasses.Result{OK: true})
	}
	return &glasses.Clock{NowMs: g.now, Reached: who == "" && g.now >= p.ToMs}
}

type fakeEndpoints struct{}

func (fakeEndpoints) AppEndpoint(_ context.Context, id string) (string, error) {
	return "ws://127.0.0.1:1/api/sessions/" + id + "/app", nil
}

func (fakeEndpoints) GatewayURL(context.Context) (string, error) { return "http://127.0.0.1:1/v1", nil }

// noPages is a backend whose sessions have no open page.
type noPages struct{}

func (noPages) WaitEvents(
	context.Context, backend.Target, string, int64, int, time.Duration,
) (backendapi.EventPage, error) {
	return backendapi.EventPage{}, notFound()
}

func (noPages) Control(
	context.Context, backend.Target, string, string, json.RawMessage, []byte,
) (json.RawMessage, error) {
	return nil, notFound()
}

func (noPages) SetAssistantScript(context.Context, backend.Target, string, []byte) error {
	return notFound()
}

// newLocal returns a manager with fake glasses in dir; it stops when the test ends.
func newLocal(t *testing.T, dir string, tr *fakeTransports, now func() time.Time) *Manager {
	t.Helper()
	f := &fakeBackend{}
	m := New(Options{StateDir: dir, Backend: f, Transports: tr,
		Endpoints: fakeEndpoints{}, Now: now})
	serve(t, m)
	return m
}

// serve runs a manager until the test ends or the returned function is called.
func serve(t *testing.T, m *Manager) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = m.Serve(ctx) }()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return stop
}

func start(t *testing.T, m *Manager, req LocalRequest) Opened {
	t.Helper()
	o, err := m.StartLocal(t.Context(), from(""), req)
	if err != nil {
		t.Fatal(err)
	}
	return o
}
