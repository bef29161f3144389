//go:build unix

package e2e

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/service-dev/service/glasses"
)

// barrierStorm answers barriers that were never sent.
func barrierStorm(t *testing.T, a arena, s target) {
	app := attach(t, s.endpoint, s.secret)
	for i := range a.share(3000) {
		app.write(websocket.MessageText, fmt.Appendf(nil,
			`{"v":1,"type":"barrier","id":"svc-%d","at":0,"payload":{}}`, i))
	}
	app.send("clock.sleep", "storm", glasses.Sleep{})
	app.next(0, "result", "storm")
	var rows []string
	must(t, "the result is in the log", func() bool {
		rows = nil
		for _, row := range a.rows(t, s.id) {
			if typ := row["type"].(string); !strings.HasSuffix(typ, ".attached") {
				rows = append(rows, typ)
			}
		}
		return len(rows) > 1
	})
	if fmt.Sprint(rows) != "[clock.sleep result]" {
		t.Errorf("log after a storm of barriers: got %v, want one sleep and its result", rows)
	}
}

// share limits a number of frames to the share that an app of a browser session may send: the backend accepts 200 per
// second from all apps together.
func (a arena) share(frames int) int {
	if a.where == "browser" {
		return min(frames, 2000)
	}
	return frames
}

// flood sends 10,000 frames without reading. Either all are eventually acknowledged, or the app is disconnected for
// being too slow.
func flood(t *testing.T, a arena, s target) {
	frames := a.share(10_000)
	app := attach(t, s.endpoint, s.secret)
	other := dial(t, s.endpoint, nil)
	other.write(websocket.MessageText, []byte(hello(s.secret)))
	for i := range frames {
		other.write(websocket.MessageText, fmt.Appendf(nil,
			`{"v":1,"type":"com.example.flood","id":"flood-%d","at":0,"payload":{"n":%d}}`, i, i))
	}
	app.send("clock.sleep", "beside", glasses.Sleep{})
	other.listen()
	acks := func() (n int) {
		for _, f := range other.all() {
			if f.Type == "ack" {
				n++
			}
		}
		return n
	}
	if !eventually(20*time.Second, func() bool { return acks() == frames || other.ended() }) {
		t.Errorf("only %d of %d frames are acknowledged, and the app is still attached", acks(), frames)
	}
	if other.ended() {
		wantSlow(t, other)
	}
	app.next(0, "result", "beside")
	t.Logf("%d acknowledged, closed: %v", acks(), other.ended())
}

// eager makes several apps send as fast as they can while they read everything. The service must still serve other
// apps.
func eager(t *testing.T, a arena, s target) {
	const apps = 4
	frames := a.share(apps*3000) / apps
	var all []*socket
	for range apps {
		all = append(all, attach(t, s.endpoint, s.secret))
	}
	var sending sync.WaitGroup
	for n, app := range all {
		sending.Go(func() {
			for i := range frames {
				frame := fmt.Appendf(nil, `{"v":1,"type":"clock.sleep","id":"eager-%d-%d","at":0,"payload":{"ms":0}}`,
					n, i)
				if app.ws.Write(t.Context(), websocket.MessageText, frame) != nil {
					return
				}
			}
		})
	}
	sending.Wait()
	for n, app := range all {
		_, _, ok := app.find(0, 20*time.Second, func(f appFrame) bool {
			return f.Type == "result" &&
				f.ID == fmt.Sprintf("eager-%d-%d", n, frames-1)
		})
		if !ok && !app.ended() {
			frames := app.all()
			t.Errorf("app %d got %d frames but no result of its last command; the last frame is %+v", n, len(frames),
				frames[len(frames)-1].Frame)
		} else if !ok {
			t.Logf("app %d was closed with %d after %d frames", n, app.closed(time.Second), len(app.all()))
		}
	}
}

// slowReader requests pictures endlessly and reads none of them.
func slowReader(t *testing.T, a arena, s target) {
	app := dial(t, s.endpoint, nil)
	app.write(websocket.MessageText, []byte(hello(s.secret)))
	for i := range 400 {
		frame := fmt.Appendf(nil, `{"v":1,"type":"camera.photo","id":"photo-%d","at":0,"payload":{"width":3024}}`, i)
		if app.ws.Write(t.Context(), websocket.MessageText, frame) != nil {
			break
		}
		time.Sleep(5 * time.Millisecond) // stays below the rate limit, so that only unread responses pile up
	}
	app.listen()
	wantSlow(t, app)
}

// wantSlow checks that a slow peer was disconnected with 1013, or without a code if it does not read the code.
func wantSlow(t *testing.T, s *socket) {
	t.Helper()
	if code := s.closed(20 * time.Second); code != websocket.StatusTryAgainLater && code != -1 {
		t.Errorf("a slow peer was closed with %d after %d frames, want 1013", code, len(s.all()))
	}
}

// stubbornApp tests an app that declares barriers and never answers them. Time still advances, and the answer to the
// agent reports the missing answer.
func stubbornApp(t *testing.T, a arena, _ target) {
	if a.agent == nil {
		return // a browser session uses real time
	}
	s := a.agent.call("startLocalSimulation", map[string]any{"fresh": true, "clock": "virtual"})
	app := dial(t, s.str(t, "appEndpoint"), nil)
	app.listen()
	first := strings.Replace(hello(secretIn(t, s.str(t, "appTokenFile"))), `"app"`, `"barrier":true,"app"`, 1)
	app.write(websocket.MessageText, []byte(first))
	app.next(0, "welcome", "h")
	app.send("clock.sleep", "nap", glasses.Sleep{Ms: 1000})
	began := time.Now()
	moved := a.agent.call("advanceTime", map[string]any{"sessionId": s.str(t, "sessionId"), "ms": 5000})
	if took := time.Since(began); moved.IsError || moved.Structured["settled"] != false || took > 25*time.Second {
		t.Errorf("advance time: after %v got %v, want unsettled within 25 s", took, moved.Structured)
	}
	app.next(0, "result", "nap")
}

// noHello sends either no hello or a late one.
func noHello(t *testing.T, _ arena, s target) {
	app := dial(t, s.endpoint, nil)
	app.listen()
	began := time.Now()
	code := app.closed(30 * time.Second)
	if took := time.Since(began); code != 4400 || took < 4*time.Second || took > 20*time.Second {
		t.Errorf("an app without hello was closed with %d after %v, want 4400 after about 5 s", code, took)
	}
	if app.ws.Write(t.Context(), websocket.MessageText, []byte(hello(s.secret))) == nil {
		t.Error("the connection accepted a hello after its close")
	}
}

// halfOpen attaches an app that does not answer pings, as if its network had failed.
func halfOpen(t *testing.T, a arena, s target) {
	app := dial(t, s.endpoint, nil)
	app.write(websocket.MessageText, []byte(hello(s.secret)))
	mustLeave(t, a, s, "app")
}

// mustLeave waits until an app or the glasses are detached.
func mustLeave(t *testing.T, a arena, s target, who string) {
	t.Helper()
	began := time.Now()
	gone := func() bool {
		return slices.ContainsFunc(a.rows(t,
			s.id), func(row map[string]any) bool { return row["type"] == who+".detached" })
	}
	for !gone() {
		if time.Since(began) > 25*time.Second {
			t.Errorf("%s that answers no ping is still attached after 25 s", who)
			return
		}
		time.Sleep(500 * time.Millisecond)
	}
}

// halfRequest starts a request without ever finishing it, or sends invalid WebSocket frames after the upgrade.
func halfRequest(t *testing.T, _ arena, s target) {
	u, err := url.Parse(s.endpoint)
	if err != nil {
		t.Error(err)
		return
	}
	start := "GET " + u.Path + " HTTP/1.1\r\nHost: " + u.Host + "\r\n"
	upgrade := "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
	for what, data := range map[string]string{"half a request": start,
		"noise after the upgrade": start + upgrade + strings.Repeat("\xff",
			100), "no mask": start + upgrade + "\x81\x02{}"} {
		c, err := net.Dial("tcp", u.Host)
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(c, data)
		_ = c.SetReadDeadline(time.Now().Add(15 * time.Second))
		if _, err := io.Copy(io.Discard, c); os.IsTimeout(err) {
			t.Errorf("%s: still connected after 15 s", what)
		}
		_ = c.Close()
	}
}

// crowd attaches more apps than a session accepts.
func crowd(t *testing.T, _ arena, s target) {
	const most = 64
	var apps []*socket
	for range most {
		app := dial(t, s.endpoint, nil)
		app.listen()
		app.write(websocket.MessageText, []byte(hello(s.secret)))
		apps = append(apps, app)
	}
	refused := dial(t, s.endpoint, nil)
	refused.listen()
	for _, app := range apps {
		app.find(0, 5*time.Second, func(f appFrame) bool { return f.Type == "welcome" })
	}
	refused.write(websocket.MessageText, []byte(hello(s.secret)))
	if code := refused.closed(10 * time.Second); code != websocket.StatusTryAgainLater {
		t.Errorf("app %d of a session was closed with %d, want \"try again later\"", most+1, code)
	}
	for _, app := range apps {
		_ = app.ws.CloseNow()
	}
}
