package appdoor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/session"
	"github.com/service-dev/service/proto/glasses"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// still are glasses that answer every command at once; a picture comes before the answer to display.show.
type still struct {
	out  chan message
	gone chan struct{}
	once sync.Once
}

type stills struct{}

func (stills) Attach(context.Context, string, backend.TransportOpen) (backend.Glasses, error) {
	return &still{out: make(chan message, 10_000), gone: make(chan struct{})}, nil
}

func (g *still) Send(data []byte, _ bool) error {
	f, err := glasses.Parse(data)
	if err != nil {
		return err
	}
	if f.Type == glasses.TypeDisplayShow {
		picture, err := glasses.EncodeBinary(glasses.Frame{Type: glasses.TypeMedia, ID: "v-" + f.ID}, append([]byte(f.ID), make([]byte, 256<<10)...))
		if err != nil {
			return err
		}
		g.out <- message{picture, true}
	}
	res, _ := glasses.New(glasses.TypeResult, f.ID, 0, glasses.Result{OK: true})
	raw, _ := res.Encode()
	g.out <- message{raw, false}
	return nil
}

func (g *still) Receive(ctx context.Context) ([]byte, bool, error) {
	select {
	case m := <-g.out:
		return m.data, m.binary, nil
	case <-g.gone:
		return nil, false, errors.New("gone")
	case <-ctx.Done():
		return nil, false, ctx.Err()
	}
}

func (g *still) Close() error { g.once.Do(func() { close(g.gone) }); return nil }

// open is a door with one session behind it.
func open(t *testing.T, dir string, o Options) (*Door, *session.Manager, session.Opened, func()) {
	t.Helper()
	o.Dir, o.Log = filepath.Join(dir, session.Dir), slog.New(slog.NewTextHandler(io.Discard, nil))
	d := New(o)
	m := session.New(session.Options{StateDir: dir, Transports: stills{}, Endpoints: d})
	d.LeadTo(m)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = d.Serve(ctx, m.AnyLocal()) })
	wg.Go(func() { _ = m.Serve(ctx) })
	stop := func() { cancel(); wg.Wait() }
	t.Cleanup(stop)
	s, err := m.StartLocal(t.Context(), caller.Caller{}, session.LocalRequest{Project: "com.example.app"})
	if err != nil {
		t.Fatal(err)
	}
	return d, m, s, stop
}

func dial(t *testing.T, url string, h http.Header) (*websocket.Conn, error) {
	t.Helper()
	ws, resp, err := websocket.Dial(t.Context(), url, &websocket.DialOptions{HTTPHeader: h, Host: h.Get("Host")})
	if err != nil {
		if resp != nil {
			return nil, fmt.Errorf("status %d", resp.StatusCode)
		}
		return nil, err
	}
	ws.SetReadLimit(glasses.MaxBinary)
	t.Cleanup(func() { _ = ws.CloseNow() })
	return ws, nil
}

func secretOf(t *testing.T, s session.Opened) string {
	t.Helper()
	data, err := os.ReadFile(s.AppTokenFile)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func greeting(secret string) string {
	return fmt.Sprintf(`{"v":1,"type":"hello","id":"h-1","at":0,"payload":{"secret":%q,"app":{"name":"app"}}}`, secret)
}

func say(t *testing.T, ws *websocket.Conn, frame string) {
	t.Helper()
	if err := ws.Write(t.Context(), websocket.MessageText, []byte(frame)); err != nil {
		t.Fatal(err)
	}
}

// until reads frames until one fits, or the connection ends.
func until(t *testing.T, ws *websocket.Conn, fits func(glasses.Frame) bool) (glasses.Frame, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for {
		kind, data, err := ws.Read(ctx)
		if err != nil {
			return glasses.Frame{}, err
		}
		if kind == websocket.MessageBinary {
			continue
		}
		var f glasses.Frame
		if err := json.Unmarshal(data, &f); err != nil {
			t.Fatal(err)
		}
		if fits(f) {
			return f, nil
		}
	}
}

func enter(t *testing.T, s session.Opened) *websocket.Conn {
	t.Helper()
	ws, err := dial(t, s.AppEndpoint, nil)
	if err != nil {
		t.Fatal(err)
	}
	say(t, ws, greeting(secretOf(t, s)))
	if _, err := until(t, ws, func(f glasses.Frame) bool { return f.Type == glasses.TypeWelcome }); err != nil {
		t.Fatal(err)
	}
	return ws
}

func TestOnlyThisMachineGetsIn(t *testing.T) {
	_, _, s, _ := open(t, t.TempDir(), Options{})
	for _, c := range []struct {
		name, host, origin string
		in                 bool
	}{
		{"an app", "", "", true},
		{"a page on this machine", "", "http://localhost:5173", true},
		{"a page on this machine by number", "", "http://127.0.0.1:8080", true},
		{"by name", "localhost:80", "", true},
		{"another name for this address", "evil.example", "", false},
		{"a name that begins right", "127.0.0.1.evil.example", "", false},
		{"a page of another site", "", "https://evil.example", false},
		{"a page without an origin of its own", "", "null", false},
		{"a local file", "", "file://", false},
		{"an origin that begins right", "", "http://localhost.evil.example", false},
	} {
		h := http.Header{}
		if c.origin != "" {
			h.Set("Origin", c.origin)
		}
		if c.host != "" {
			h.Set("Host", c.host)
		}
		if _, err := dial(t, s.AppEndpoint, h); (err == nil) != c.in || err != nil && !strings.Contains(err.Error(), "403") {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// Every refusal has a close code that tells the app whether to come back.
func TestRefusals(t *testing.T) {
	_, m, s, _ := open(t, t.TempDir(), Options{HelloWait: 200 * time.Millisecond})
	gone, err := m.StartLocal(t.Context(), caller.Caller{}, session.LocalRequest{Project: "com.example.other"})
	if err != nil {
		t.Fatal(err)
	}
	secret, other := secretOf(t, s), secretOf(t, gone)
	if _, err := m.Close(t.Context(), backend.Target{}, gone.SessionID); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, url, first string
		code             websocket.StatusCode
	}{
		{"silence", s.AppEndpoint, "", session.CloseBadHello},
		{"no JSON", s.AppEndpoint, "hello", session.CloseBadHello},
		{"another frame first", s.AppEndpoint, `{"v":1,"type":"display.clear","id":"a","at":0}`, session.CloseBadHello},
		{"a huge hello", s.AppEndpoint, greeting(strings.Repeat("x", 5000)), websocket.StatusMessageTooBig},
		{"a wrong secret", s.AppEndpoint, greeting(other), session.CloseBadSecret},
		{"a closed session", gone.AppEndpoint, greeting(other), session.CloseBadSecret},
		{"no such session", strings.Replace(s.AppEndpoint, s.SessionID, "loc_aaaaaaaaaaaaaaaaaaaa", 1), greeting(secret), session.CloseBadSecret},
		{"a path out of it", strings.Replace(s.AppEndpoint, s.SessionID, "..%2f..%2fx", 1), greeting(secret), session.CloseBadSecret},
	} {
		ws, err := dial(t, c.url, nil)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if c.first != "" {
			say(t, ws, c.first)
		}
		if _, err := until(t, ws, func(glasses.Frame) bool { return true }); websocket.CloseStatus(err) != c.code {
			t.Errorf("%s: %v, want code %d", c.name, err, c.code)
		}
	}
}

func TestFrames(t *testing.T) {
	_, m, s, _ := open(t, t.TempDir(), Options{})
	ws := enter(t, s)
	say(t, ws, `{"v":1,"type":"display.clear","id":"a-1","at":0}`)
	if f, err := until(t, ws, func(f glasses.Frame) bool { return f.Type == glasses.TypeResult }); err != nil || f.ID != "a-1" {
		t.Errorf("%+v, %v", f, err)
	}
	for name, frame := range map[string]string{"noise": "{{{", "no id": `{"v":1,"type":"x","at":0}`, "version": `{"v":2,"type":"x","id":"y","at":0}`, "control": `{"v":1,"type":"sim.input","id":"z","at":0,"payload":{"kind":"tap"}}`} {
		say(t, ws, frame)
		if _, err := until(t, ws, func(f glasses.Frame) bool { return f.Type == glasses.TypeError }); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := ws.Write(t.Context(), websocket.MessageBinary, []byte{0, 1, 2}); err != nil {
		t.Fatal(err)
	}
	if _, err := until(t, ws, func(f glasses.Frame) bool { return f.Type == glasses.TypeError }); err != nil {
		t.Errorf("binary: %v", err)
	}
	quiet := enter(t, s)
	say(t, ws, `{"v":1,"type":"x","id":"big","at":0,"payload":{"a":"`+strings.Repeat("x", glasses.MaxFrame)+`"}}`)
	if _, err := until(t, ws, func(glasses.Frame) bool { return false }); websocket.CloseStatus(err) != websocket.StatusMessageTooBig {
		t.Errorf("a huge frame: %v", err)
	}
	say(t, quiet, `{"v":1,"type":"display.clear","id":"b-1","at":0}`)
	if _, err := until(t, quiet, func(f glasses.Frame) bool { return f.Type == glasses.TypeResult }); err != nil {
		t.Errorf("the other app was disturbed: %v", err)
	}
	if _, err := m.Close(t.Context(), backend.Target{}, s.SessionID); err != nil {
		t.Fatal(err)
	}
	if _, err := until(t, quiet, func(glasses.Frame) bool { return false }); websocket.CloseStatus(err) != session.CloseSessionOver {
		t.Errorf("a closed session: %v", err)
	}
}

// An app that floods is slowed down, and each of its frames gets its row and its result.
func TestAFloodIsSlowedAndNothingLost(t *testing.T) {
	_, m, s, _ := open(t, t.TempDir(), Options{FrameRate: 1000})
	ws := enter(t, s)
	const frames = 1500
	go func() {
		for i := range frames {
			if ws.Write(context.Background(), websocket.MessageText, fmt.Appendf(nil, `{"v":1,"type":"display.clear","id":"a-%d","at":0}`, i)) != nil {
				return
			}
		}
	}()
	began, results := time.Now(), 0
	if _, err := until(t, ws, func(f glasses.Frame) bool {
		if f.Type == glasses.TypeResult {
			results++
		}
		return results == frames
	}); err != nil {
		t.Fatalf("after %d results: %v", results, err)
	}
	if took := time.Since(began); took < 400*time.Millisecond {
		t.Errorf("%d frames went through in %v", frames, took)
	}
	got, _ := m.Get(t.Context(), backend.Target{}, s.SessionID)
	if want := int64(2 + 2*frames); got.LastSeq != want {
		t.Errorf("%d rows, want %d", got.LastSeq, want)
	}
}

// An app that does not read is cut off and disturbs nobody.
func TestASlowAppIsCutOff(t *testing.T) {
	_, m, s, _ := open(t, t.TempDir(), Options{OutboxMax: 2 << 20})
	lazy, quick := enter(t, s), enter(t, s)
	for i := 0; ; i++ {
		say(t, quick, fmt.Sprintf(`{"v":1,"type":"display.show","id":"q-%d","at":0,"payload":{"tree":{"type":"text","text":"a"}}}`, i))
		if _, err := until(t, quick, func(f glasses.Frame) bool { return f.Type == glasses.TypeResult }); err != nil {
			t.Fatalf("the quick app after %d: %v", i, err)
		}
		if got, _ := m.Get(t.Context(), backend.Target{}, s.SessionID); got.Apps == 1 {
			break
		}
		if i > 2000 {
			t.Fatal("the lazy app is still there")
		}
	}
	if _, err := until(t, lazy, func(glasses.Frame) bool { return false }); err == nil {
		t.Error("the lazy app was not ended")
	}
}

func TestTooManyApps(t *testing.T) {
	_, _, s, _ := open(t, t.TempDir(), Options{})
	for range session.MaxApps {
		enter(t, s)
	}
	ws, err := dial(t, s.AppEndpoint, nil)
	if err != nil {
		t.Fatal(err)
	}
	say(t, ws, greeting(secretOf(t, s)))
	if _, err := until(t, ws, func(glasses.Frame) bool { return true }); websocket.CloseStatus(err) != session.CloseSlow {
		t.Errorf("one more app: %v", err)
	}
}

// A daemon that restarts tells its apps to come back, and they find it where it was.
func TestRestart(t *testing.T) {
	dir := t.TempDir()
	_, _, s, stop := open(t, dir, Options{})
	ws := enter(t, s)
	go stop()
	if _, err := until(t, ws, func(glasses.Frame) bool { return false }); websocket.CloseStatus(err) != session.CloseRestart {
		t.Errorf("ended with %v", err)
	}
	stop()
	_, m, again, _ := open(t, dir, Options{})
	if again.Created || again.AppEndpoint != s.AppEndpoint {
		t.Errorf("endpoint %s, was %s", again.AppEndpoint, s.AppEndpoint)
	}
	enter(t, s)
	page, err := m.Since(t.Context(), backend.Target{}, s.SessionID, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for _, raw := range page.Events {
		var e glasses.Event
		_ = json.Unmarshal(raw, &e)
		words = append(words, e.Type)
	}
	if got, want := strings.Join(words, " "), "glasses.attached app.attached app.detached glasses.detached glasses.attached app.attached"; got != want {
		t.Errorf("rows %s\nwant %s", got, want)
	}
}

// A port that somebody else took meanwhile is given up.
func TestATakenPort(t *testing.T) {
	dir := t.TempDir()
	_, _, s, stop := open(t, dir, Options{})
	stop()
	host := strings.Split(strings.TrimPrefix(s.AppEndpoint, "ws://"), "/")[0]
	l, err := net.Listen("tcp4", host)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, _, again, _ := open(t, dir, Options{})
	if again.AppEndpoint == s.AppEndpoint {
		t.Error("the same port")
	}
	enter(t, again)
}

// A secret that somebody else may have been shown, and could use, is replaced: at another port, and where owners cannot
// be learnt at every start.
func TestSecretsAreReplaced(t *testing.T) {
	unknown := func() error { return errors.New("no such table") }
	known := func() error { return nil }
	for _, c := range []struct {
		name     string
		probe    func() error
		taken    bool
		replaced bool
	}{
		{"the same port", known, false, false},
		{"another port", known, true, true},
		{"the same port, owners unknown", unknown, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			_, _, s, stop := open(t, dir, Options{Probe: c.probe})
			before := secretOf(t, s)
			enter(t, s)
			stop()
			if c.taken {
				l, err := net.Listen("tcp4", strings.Split(strings.TrimPrefix(s.AppEndpoint, "ws://"), "/")[0])
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()
			}
			_, _, again, _ := open(t, dir, Options{Probe: c.probe})
			if again.Created || (secretOf(t, again) != before) != c.replaced {
				t.Errorf("created %t, replaced %t", again.Created, secretOf(t, again) != before)
			}
			enter(t, again)
			ws, err := dial(t, again.AppEndpoint, nil)
			if err != nil {
				t.Fatal(err)
			}
			say(t, ws, greeting(before))
			_, err = until(t, ws, func(f glasses.Frame) bool { return f.Type == glasses.TypeWelcome })
			if (websocket.CloseStatus(err) == session.CloseBadSecret) != c.replaced {
				t.Errorf("with the secret of before: %v", err)
			}
		})
	}
}

// An app whose machine sleeps or whose cable is out is noticed.
func TestAnAppThatDoesNotAnswerPings(t *testing.T) {
	_, m, s, _ := open(t, t.TempDir(), Options{PingEvery: 50 * time.Millisecond})
	enter(t, s) // it reads nothing from here on, so it answers no ping
	page, err := m.Wait(t.Context(), backend.Target{}, s.SessionID, 2, 10, 10*time.Second)
	if err != nil || len(page.Events) == 0 || !strings.Contains(string(page.Events[0]), glasses.RowAppDetached) {
		t.Errorf("%s, %v", page.Events, err)
	}
}
