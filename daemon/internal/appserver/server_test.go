package appserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/session"
	"github.com/service-dev/service/glasses"
)

func TestServer_RefusesOtherHostsAndOrigins(t *testing.T) {
	_, s, _ := serve(t, t.TempDir(), Options{})
	for _, c := range []struct {
		name, host, origin string
		allowed            bool
	}{
		{"an app", "", "", true},
		{"a page on this machine", "", "http://localhost:5173", true},
		{"a page on this machine by number", "", "http://127.0.0.1:8080", true},
		{"by name", "localhost:80", "", true},
		{"another name for this address", "evil.example", "", false},
		{"a name with a local prefix", "127.0.0.1.evil.example", "", false},
		{"a page of another site", "", "https://evil.example", false},
		{"a page with an opaque origin", "", "null", false},
		{"a local file", "", "file://", false},
		{"an origin with a local prefix", "", "http://localhost.evil.example", false},
	} {
		h := http.Header{}
		if c.origin != "" {
			h.Set("Origin", c.origin)
		}
		if c.host != "" {
			h.Set("Host", c.host)
		}
		if _, err := dial(t, s.AppEndpoint, h); (err == nil) != c.allowed || err != nil &&
			!strings.Contains(err.Error(), "403") {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// Every refusal has a close code that tells the app whether to retry.
func TestServer_RefusesWithCloseCode(t *testing.T) {
	m, s, _ := serve(t, t.TempDir(), Options{HelloWait: 200 * time.Millisecond})
	gone, err := m.StartLocal(t.Context(), caller.Caller{}, session.LocalRequest{Project: "com.example.other"})
	if err != nil {
		t.Fatal(err)
	}
	secret, other := secretOf(t, s), secretOf(t, gone)
	at := func(id string) string { return strings.Replace(s.AppEndpoint, s.SessionID, id, 1) }
	if _, err := m.Close(t.Context(), backend.Target{}, gone.SessionID); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, url, first string
		code             websocket.StatusCode
	}{
		{"silence", s.AppEndpoint, "", glasses.CloseBadHello},
		{"no JSON", s.AppEndpoint, "hello", glasses.CloseBadHello},
		{"another frame first", s.AppEndpoint, `{"v":1,"type":"display.clear","id":"a","at":0}`, glasses.CloseBadHello},
		{"a huge hello", s.AppEndpoint, helloFrame(strings.Repeat("x", 5000)), websocket.StatusMessageTooBig},
		{"a wrong secret", s.AppEndpoint, helloFrame(other), glasses.CloseBadSecret},
		{"a closed session", gone.AppEndpoint, helloFrame(other), glasses.CloseBadSecret},
		{"no such session", at("loc_aaaaaaaaaaaaaaaaaaaa"), helloFrame(secret), glasses.CloseBadSecret},
		{"a path out of it", at("..%2f..%2fx"), helloFrame(secret), glasses.CloseBadSecret},
	} {
		ws, err := dial(t, c.url, nil)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if c.first != "" {
			send(t, ws, c.first)
		}
		if _, err := until(t, ws, func(glasses.Frame) bool { return true }); websocket.CloseStatus(err) != c.code {
			t.Errorf("%s: %v, want code %d", c.name, err, c.code)
		}
	}
}

func TestServer_PassesFrames(t *testing.T) {
	m, s, _ := serve(t, t.TempDir(), Options{})
	ws := attach(t, s)
	isResult := func(f glasses.Frame) bool { return f.Type == glasses.TypeResult }
	never := func(glasses.Frame) bool { return false }
	send(t, ws, `{"v":1,"type":"display.clear","id":"a-1","at":0}`)
	if f, err := until(t, ws, isResult); err != nil || f.ID != "a-1" {
		t.Errorf("%+v, %v", f, err)
	}
	for name, frame := range map[string]string{
		"noise": "{{{", "no id": `{"v":1,"type":"x","at":0}`, "version": `{"v":2,"type":"x","id":"y","at":0}`,
		"control": `{"v":1,"type":"sim.input","id":"z","at":0,"payload":{"kind":"tap"}}`,
	} {
		send(t, ws, frame)
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
	quiet := attach(t, s)
	send(t, ws, `{"v":1,"type":"x","id":"big","at":0,"payload":{"a":"`+strings.Repeat("x", glasses.MaxFrame)+`"}}`)
	if _, err := until(t, ws, never); websocket.CloseStatus(err) != websocket.StatusMessageTooBig {
		t.Errorf("an oversized frame: %v, want StatusMessageTooBig", err)
	}
	send(t, quiet, `{"v":1,"type":"display.clear","id":"b-1","at":0}`)
	if _, err := until(t, quiet, isResult); err != nil {
		t.Errorf("the other app was disconnected: %v", err)
	}
	if _, err := m.Close(t.Context(), backend.Target{}, s.SessionID); err != nil {
		t.Fatal(err)
	}
	_, err := until(t, quiet, func(glasses.Frame) bool { return false })
	if websocket.CloseStatus(err) != glasses.CloseSessionOver {
		t.Errorf("a closed session: %v, want CloseSessionOver", err)
	}
}

// An app that sends too fast is slowed down. Each of its frames still gets its row and its result.
func TestServer_SlowsFloodWithoutLoss(t *testing.T) {
	m, s, _ := serve(t, t.TempDir(), Options{})
	ws := attach(t, s)
	const frames = 2800 // 2000 of them are one burst
	began, results := time.Now(), 0
	go func() {
		for i := range frames {
			frame := fmt.Appendf(nil, `{"v":1,"type":"display.clear","id":"a-%d","at":0}`, i)
			if ws.Write(context.Background(), websocket.MessageText, frame) != nil {
				return
			}
		}
	}()
	if _, err := until(t, ws, func(f glasses.Frame) bool {
		if f.Type == glasses.TypeResult {
			results++
		}
		return results == frames
	}); err != nil {
		t.Fatalf("only %d results arrived: %v", results, err)
	}
	if took := time.Since(began); took < 400*time.Millisecond {
		t.Errorf("%d frames were delivered in %v, want at least 400 ms", frames, took)
	}
	// The app gets a result just before its row is logged.
	const want = 2 + 2*frames
	got, _ := m.Get(t.Context(), backend.Target{}, s.SessionID)
	for got.LastSeq < want && time.Since(began) < 2*time.Minute {
		got, _ = m.Get(t.Context(), backend.Target{}, s.SessionID)
	}
	if got.LastSeq != want {
		t.Errorf("%d rows, want %d", got.LastSeq, want)
	}
}

// An app that does not read is disconnected without disturbing others.
func TestServer_CutsSlowAppOff(t *testing.T) {
	m, s, _ := serve(t, t.TempDir(), Options{OutboxMax: 2 << 20})
	lazy, quick := attach(t, s), attach(t, s)
	for i := 0; ; i++ {
		send(t, quick, fmt.Sprintf(`{"v":1,"type":"display.show","id":"q-%d","at":0,`+
			`"payload":{"tree":{"type":"text","text":"a"}}}`, i))
		if _, err := until(t, quick, func(f glasses.Frame) bool { return f.Type == glasses.TypeResult }); err != nil {
			t.Fatalf("the reading app failed at frame %d: %v", i, err)
		}
		if got, _ := m.Get(t.Context(), backend.Target{}, s.SessionID); got.Apps == 1 {
			break
		}
		if i > 2000 {
			t.Fatal("the app that does not read is still attached")
		}
	}
	if _, err := until(t, lazy, func(glasses.Frame) bool { return false }); err == nil {
		t.Error("the app that does not read was not disconnected")
	}
}

func TestServer_RefusesTooManyApps(t *testing.T) {
	_, s, _ := serve(t, t.TempDir(), Options{})
	for range session.MaxApps {
		attach(t, s)
	}
	ws, err := dial(t, s.AppEndpoint, nil)
	if err != nil {
		t.Fatal(err)
	}
	send(t, ws, helloFrame(secretOf(t, s)))
	if _, err := until(t, ws, func(glasses.Frame) bool { return true }); websocket.CloseStatus(err) != glasses.CloseSlow {
		t.Errorf("one app over the limit: %v, want CloseSlow", err)
	}
}

// A daemon that restarts asks its apps to reconnect, and they find the new daemon at the same address.
func TestServer_KeepsPortOverRestart(t *testing.T) {
	dir := t.TempDir()
	_, s, stop := serve(t, dir, Options{})
	ws := attach(t, s)
	go stop()
	_, err := until(t, ws, func(glasses.Frame) bool { return false })
	if websocket.CloseStatus(err) != glasses.CloseRestart {
		t.Errorf("closed with %v, want CloseRestart", err)
	}
	stop()
	m, again, _ := serve(t, dir, Options{})
	if again.Created || again.AppEndpoint != s.AppEndpoint {
		t.Errorf("endpoint %s, want the old endpoint %s", again.AppEndpoint, s.AppEndpoint)
	}
	attach(t, s)
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
	want := "glasses.attached app.attached app.detached glasses.detached glasses.attached app.attached"
	if got := strings.Join(words, " "); got != want {
		t.Errorf("rows %s\nwant %s", got, want)
	}
}

// If another program has taken the port, the server uses a new one.
func TestServer_ReplacesTakenPort(t *testing.T) {
	dir := t.TempDir()
	_, s, stop := serve(t, dir, Options{})
	stop()
	host := strings.Split(strings.TrimPrefix(s.AppEndpoint, "ws://"), "/")[0]
	l, err := net.Listen("tcp4", host)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, again, _ := serve(t, dir, Options{})
	if again.AppEndpoint == s.AppEndpoint {
		t.Error("the endpoint did not change although its port was taken")
	}
	attach(t, again)
}

// A secret that another user may have received and could use is replaced: if the port changes, and at every
// start if the owner of a connection cannot be determined.
func TestServer_ReplacesExposedSecrets(t *testing.T) {
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
			_, s, stop := serve(t, dir, Options{Probe: c.probe})
			before := secretOf(t, s)
			attach(t, s)
			stop()
			if c.taken {
				l, err := net.Listen("tcp4", strings.Split(strings.TrimPrefix(s.AppEndpoint, "ws://"), "/")[0])
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()
			}
			_, again, _ := serve(t, dir, Options{Probe: c.probe})
			if again.Created || (secretOf(t, again) != before) != c.replaced {
				t.Errorf("session created: %t, secret replaced: %t", again.Created, secretOf(t, again) != before)
			}
			attach(t, again)
			ws, err := dial(t, again.AppEndpoint, nil)
			if err != nil {
				t.Fatal(err)
			}
			send(t, ws, helloFrame(before))
			_, err = until(t, ws, func(f glasses.Frame) bool { return f.Type == glasses.TypeWelcome })
			if (websocket.CloseStatus(err) == glasses.CloseBadSecret) != c.replaced {
				t.Errorf("attach with the old secret: %v; want CloseBadSecret only if it was replaced", err)
			}
		})
	}
}

// An app that does not answer pings is detached. Its machine may be asleep or its cable unplugged.
func TestServer_DetachesSilentApp(t *testing.T) {
	m, s, _ := serve(t, t.TempDir(), Options{PingEvery: 50 * time.Millisecond})
	attach(t, s) // this connection is never read, so pings are not answered
	page, err := m.Wait(t.Context(), backend.Target{}, s.SessionID, 2, 10, 10*time.Second)
	if err != nil || len(page.Events) == 0 || !strings.Contains(string(page.Events[0]), glasses.RowAppDetached) {
		t.Errorf("%s, %v", page.Events, err)
	}
}
