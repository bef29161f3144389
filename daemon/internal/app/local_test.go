//go:build unix

package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/service-dev/service/daemon/internal/appserver"
	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/pluginhost"
	"github.com/service-dev/service/daemon/internal/scenario"
	"github.com/service-dev/service/daemon/internal/session"
	"github.com/service-dev/service/glasses"
)

// locals are the real components that serve local sessions: adapter processes, app server, sessions.
type locals struct {
	*session.Manager
	host *pluginhost.Host
	stop func()
}

func startLocals(t testing.TB, dir string) *locals {
	t.Helper()
	sockets, err := os.MkdirTemp("", "s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(sockets) })
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	if os.Getenv("SHOW_LOG") != "" {
		log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	host, err := pluginhost.New(pluginhost.Options{Dir: adapterDir, ConfigDir: dir, SocketDir: sockets, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	p := &daemon{log: log, now: time.Now, host: host}
	p.paths.Dir = dir
	p.assembleSessions()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = p.serveSessions(ctx) }()
	l := &locals{Manager: p.sessions, host: host, stop: sync.OnceFunc(func() { cancel(); <-done })}
	t.Cleanup(l.stop)
	return l
}

var _ scenario.Sessions = (*session.Manager)(nil)
var _ appserver.Sessions = (*session.Manager)(nil)

// testApp is an app as users write it: a loop that receives frames and responds to them.
type testApp struct {
	t    testing.TB
	ws   *websocket.Conn
	n    int
	done chan struct{}
	// on handles a frame from the glasses.
	on func(a *testApp, f glasses.Frame)
	// gateway is the model gateway that its assistant calls. calls is the number of pending calls.
	gateway *glasses.Gateway
	calls   atomic.Int32
}

// attach starts the app and returns after it has received its welcome.
func attach(t testing.TB, o session.Opened, barrier bool, begin func(a *testApp),
	on func(a *testApp, f glasses.Frame)) *testApp {
	t.Helper()
	secret, err := os.ReadFile(o.AppTokenFile)
	if err != nil {
		t.Fatal(err)
	}
	ws, resp, err := websocket.Dial(context.Background(), o.AppEndpoint, nil)
	if err != nil {
		t.Fatal(err)
	}
	if resp.Body != nil {
		_ = resp.Body.Close()
	}
	ws.SetReadLimit(glasses.MaxBinary)
	a := &testApp{t: t, ws: ws, on: on, done: make(chan struct{})}
	a.send(glasses.TypeHello, "hello-1", glasses.Hello{Secret: string(secret), App: glasses.AppInfo{Name: "test app"},
		Barrier: barrier})
	f, _ := a.read()
	var w glasses.Welcome
	if err := json.Unmarshal(f.Payload, &w); err != nil || f.Type != glasses.TypeWelcome {
		t.Fatalf("want a welcome, got %s %s", f.Type, f.Payload)
	}
	a.gateway = w.Gateway
	if begin != nil {
		begin(a)
	}
	go a.loop()
	t.Cleanup(a.leave)
	return a
}

func (a *testApp) leave() {
	_ = a.ws.CloseNow()
	<-a.done
}

func (a *testApp) send(typ, id string, payload any) {
	f, err := glasses.New(typ, id, 0, payload)
	if err != nil {
		panic(err)
	}
	data, _ := f.Encode()
	_ = a.ws.Write(context.Background(), websocket.MessageText, data)
}

// ask sends a command with a new id.
func (a *testApp) ask(typ string, payload any) string {
	a.n++
	id := fmt.Sprintf("a-%d", a.n)
	a.send(typ, id, payload)
	return id
}

func (a *testApp) read() (f glasses.Frame, ok bool) {
	kind, data, err := a.ws.Read(context.Background())
	if err != nil {
		return f, false
	}
	if kind == websocket.MessageBinary {
		f, _, err = glasses.ParseBinary(data)
	} else {
		err = json.Unmarshal(data, &f)
	}
	if err != nil {
		panic(err)
	}
	return f, true
}

func (a *testApp) loop() {
	defer close(a.done)
	for {
		f, ok := a.read()
		if !ok {
			return
		}
		if f.Type == glasses.TypeBarrier {
			calls := int(a.calls.Load())
			a.send(glasses.TypeBarrier, f.ID, glasses.BarrierAnswer{Calls: &calls})
			continue
		}
		a.on(a, f)
	}
}

func text(s string) glasses.Show {
	return glasses.Show{Tree: glasses.Node{Type: glasses.NodeColumn, Children: []glasses.Node{
		{Type: glasses.NodeText, Text: s, Style: glasses.StyleTitle}, {Type: glasses.NodeButton, Text: "Next", ID: "next"},
	}}}
}

// counter is an app that shows a count. Each tap and a two-second timer increment it.
func counter() (begin func(*testApp), on func(*testApp, glasses.Frame)) {
	count, sleeping := 0, ""
	show := func(a *testApp) { a.ask(glasses.TypeDisplayShow, text(fmt.Sprintf("count %d", count))) }
	sleep := func(a *testApp) { sleeping = a.ask(glasses.TypeClockSleep, glasses.Sleep{Ms: 2000}) }
	begin = func(a *testApp) { show(a); sleep(a) }
	on = func(a *testApp, f glasses.Frame) {
		switch {
		case f.Type == glasses.TypeInput:
			count++
			show(a)
		case f.Type == glasses.TypeResult && f.ID == sleeping:
			count++
			show(a)
			sleep(a)
		}
	}
	return begin, on
}

const minute = `{"scenario":1,"name":"a minute","clock":"virtual","deviceModel":"rayban_display","steps":[
	{"expect":{"type":"display.show","payload":{"tree":{"type":"column"}}}},
	{"expectDisplay":{"text":["count 0"],"focus":"next"}},
	{"advance":10000},
	{"expectDisplay":{"text":["count 5"]}},
	{"input":{"kind":"tap"}},
	{"expect":{"type":"display.show","kind":"request"}},
	{"expectDisplay":{"text":["count 6"]}},
	{"state":{"battery":{"level":9,"charging":false}}},
	{"expect":{"type":"battery","payload":{"level":9}}},
	{"expect":{"type":"display.clear","absent":true,"withinMs":500}},
	{"advance":49500},
	{"picture":"end"},
	{"expectDisplay":{"text":["count 31"]}}]}`

func write(t testing.TB, path, body string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// runMinute runs the scenario in a new session and returns the report, the log's text and the time it took.
func runMinute(t testing.TB, l *locals, path string) (scenario.Report, string, time.Duration) {
	t.Helper()
	o, err := l.StartLocal(t.Context(), caller.Caller{},
		session.LocalRequest{Project: "com.example.app", Clock: "virtual", Fresh: true})
	if err != nil {
		t.Fatal(err)
	}
	begin, on := counter()
	a := attach(t, o, true, begin, on)
	began := time.Now()
	report, err := scenario.New(l).Run(t.Context(), scenario.Request{Files: ours, SessionID: o.SessionID, Path: path})
	took := time.Since(began)
	if err != nil {
		t.Fatal(err)
	}
	page, err := l.Since(t.Context(), backend.Target{}, o.SessionID, 0, session.MaxLimit)
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	for _, row := range page.Events {
		log.Write(row)
		log.WriteByte('\n')
	}
	a.leave()
	if _, err := l.Close(t.Context(), backend.Target{}, o.SessionID); err != nil {
		t.Fatal(err)
	}
	return report, log.String(), took
}

// TestAMinuteInVirtualTime checks that runs in virtual time, as in CI, are fast and always produce the same log and
// pictures.
func TestAMinuteInVirtualTime(t *testing.T) {
	t.Parallel()
	l := startLocals(t, t.TempDir())
	path := write(t, filepath.Join(t.TempDir(), "minute.json"), minute)
	report, log, took := runMinute(t, l, path)
	if report.Verdict != scenario.Pass || report.DurationMs != 60_000 {
		t.Fatalf("report %+v; want a pass after 60 s\n%s", report, log)
	}
	runs := 20
	if n, err := strconv.Atoi(os.Getenv("MINUTES")); err == nil {
		runs = n
	}
	if testing.Short() {
		runs = 3
	}
	slowest := took
	for range runs {
		again, same, took := runMinute(t, l, path)
		if same != log {
			t.Fatalf("the log differs:\n%s\nwant the log of the first run:\n%s", same, log)
		}
		if again.Pictures[0].SHA256 != report.Pictures[0].SHA256 {
			t.Fatalf("the picture differs: %+v, want %+v", again.Pictures, report.Pictures)
		}
		slowest = max(slowest, took)
	}
	t.Logf("first run %v, slowest %v, %d rows", took, slowest, strings.Count(log, "\n"))
}
