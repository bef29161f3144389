package appserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/session"
	"github.com/service-dev/service/glasses"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type message struct {
	data   []byte
	binary bool
}

// fakeGlasses answers every command immediately. For display.show, it sends a picture before the answer.
type fakeGlasses struct {
	out  chan message
	gone chan struct{}
	once sync.Once
}

type fakeTransports struct{}

func (fakeTransports) Attach(context.Context, string, backend.TransportOpen) (backend.Glasses, error) {
	return &fakeGlasses{out: make(chan message, 10_000), gone: make(chan struct{})}, nil
}

func (g *fakeGlasses) Send(data []byte, _ bool) error {
	f, err := glasses.Parse(data)
	if err != nil {
		return err
	}
	if f.Type == glasses.TypeDisplayShow {
		body := append([]byte(f.ID), make([]byte, 256<<10)...)
		picture, err := glasses.EncodeBinary(glasses.Frame{Type: glasses.TypeMedia, ID: "v-" + f.ID}, body)
		if err != nil {
			return err
		}
		g.out <- message{data: picture, binary: true}
	}
	res, _ := glasses.New(glasses.TypeResult, f.ID, 0, glasses.Result{OK: true})
	raw, _ := res.Encode()
	g.out <- message{data: raw}
	return nil
}

func (g *fakeGlasses) Receive(ctx context.Context) ([]byte, bool, error) {
	select {
	case m := <-g.out:
		return m.data, m.binary, nil
	case <-g.gone:
		return nil, false, errors.New("gone")
	case <-ctx.Done():
		return nil, false, ctx.Err()
	}
}

func (g *fakeGlasses) SetPanel(backend.PairPanel) error { return nil }

func (g *fakeGlasses) Close() error { g.once.Do(func() { close(g.gone) }); return nil }

func (fakeTransports) Transport(name string) (backend.Transport, error) {
	return backend.Transport{Name: name, VirtualClock: true}, nil
}

// serve starts a server with one session.
func serve(t *testing.T, dir string, o Options) (m *session.Manager, s session.Opened, stop func()) {
	t.Helper()
	o.Dir, o.Log = filepath.Join(dir, session.Dir), slog.New(slog.NewTextHandler(io.Discard, nil))
	server := New(o)
	m = session.New(session.Options{StateDir: dir, Transports: fakeTransports{}, Endpoints: server})
	server.SetSessions(m)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = server.Serve(ctx, m.AnyLocal()) })
	wg.Go(func() { _ = m.Serve(ctx) })
	stop = func() { cancel(); wg.Wait() }
	t.Cleanup(stop)
	s, err := m.StartLocal(t.Context(), caller.Caller{}, session.LocalRequest{Project: "com.example.app"})
	if err != nil {
		t.Fatal(err)
	}
	return m, s, stop
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

func helloFrame(secret string) string {
	return fmt.Sprintf(`{"v":1,"type":"hello","id":"h-1","at":0,"payload":{"secret":%q,"app":{"name":"app"}}}`, secret)
}

func send(t *testing.T, ws *websocket.Conn, frame string) {
	t.Helper()
	if err := ws.Write(t.Context(), websocket.MessageText, []byte(frame)); err != nil {
		t.Fatal(err)
	}
}

// until reads frames until one matches or the connection ends.
func until(t *testing.T, ws *websocket.Conn, fits func(glasses.Frame) bool) (glasses.Frame, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
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

func attach(t *testing.T, s session.Opened) *websocket.Conn {
	t.Helper()
	ws, err := dial(t, s.AppEndpoint, nil)
	if err != nil {
		t.Fatal(err)
	}
	send(t, ws, helloFrame(secretOf(t, s)))
	if _, err := until(t, ws, func(f glasses.Frame) bool { return f.Type == glasses.TypeWelcome }); err != nil {
		t.Fatal(err)
	}
	return ws
}
