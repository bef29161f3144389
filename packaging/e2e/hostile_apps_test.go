//go:build unix

package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/service-dev/service/proto/glasses"
)

func hello(secret string) string {
	return fmt.Sprintf(`{"v":1,"type":"hello","id":"h","at":0,"payload":{"secret":%q,"app":{"name":"Hostile"}}}`, secret)
}

// badHellos are first frames that let nobody in, each with its close code.
func badHellos(t *testing.T, _ arena, s target) {
	other := strings.Replace(s.endpoint, s.id, s.id[:4]+strings.Repeat("a", len(s.id)-4), 1)
	for _, c := range []struct {
		name, endpoint, first string
		kind                  websocket.MessageType
		want                  websocket.StatusCode
	}{
		{"a wrong secret", s.endpoint, hello("wrong"), websocket.MessageText, 4401},
		{"a secret for no session", other, hello(s.secret), websocket.MessageText, 4401},
		{"a command", s.endpoint, `{"v":1,"type":"display.clear","id":"h","at":0,"payload":{}}`, websocket.MessageText, 4400},
		{"no secret", s.endpoint, hello(""), websocket.MessageText, 4400},
		{"a secret of 300 characters", s.endpoint, hello(strings.Repeat("s", 300)), websocket.MessageText, 4400},
		{"no name", s.endpoint, `{"v":1,"type":"hello","id":"h","at":0,"payload":{"secret":"x","app":{}}}`, websocket.MessageText, 4400},
		{"a cursor before the beginning", s.endpoint, `{"v":1,"type":"hello","id":"h","at":0,"payload":{"secret":"x","app":{"name":"a"},"since":-1}}`, websocket.MessageText, 4400},
		{"no JSON", s.endpoint, "hello", websocket.MessageText, 4400},
		{"nothing", s.endpoint, "", websocket.MessageText, 4400},
		{"noise", s.endpoint, "\x00\x01\xff", websocket.MessageBinary, 4400},
		{"another version", s.endpoint, `{"v":2,"type":"hello","id":"h","at":0,"payload":{}}`, websocket.MessageText, 4400},
		{"a huge hello", s.endpoint, hello(s.secret) + strings.Repeat(" ", glasses.MaxHello), websocket.MessageText, 1009},
		{"a hello of megabytes", s.endpoint, strings.Repeat(" ", 3<<20), websocket.MessageText, 1009},
	} {
		app := dial(t, c.endpoint, nil)
		app.listen()
		_ = app.ws.Write(t.Context(), c.kind, []byte(c.first)) // it may be cut off on the way
		if code := app.closed(10 * time.Second); code != c.want {
			t.Errorf("%s: closed with %d, want %d", c.name, code, c.want)
		}
	}
}

// refusedTypes are those that neither app nor page may send.
func refusedTypes() []string {
	return []string{"hello", "welcome", "ack", "error", "row", "cursor", "peers", "role", "beat",
		"sim.input", "sim.transcript", "sim.state", "sim.motion", "sim.fault", "sim.device", "sim.camera", "sim.microphone", "sim.advance"}
}

func wantRefusal(t *testing.T, s *socket, id, code string) {
	t.Helper()
	f, _, ok := s.find(0, 10*time.Second, func(f appFrame) bool { return f.Type == "error" && f.ID == id })
	var e glasses.Error
	if err := json.Unmarshal(f.Payload, &e); !ok || err != nil || e.Code != code || e.Message == "" {
		t.Errorf("%s: want error %s, got %s", id, code, f.Payload)
	}
}

// badFrames are refused one by one, and only what is good is written down.
func badFrames(t *testing.T, a arena, s target) {
	before := len(a.rows(t, s.id))
	app := attach(t, s.endpoint, s.secret)
	types := append(refusedTypes(), "result", "input", "transcript", "speech", "motion", "battery", "wear", "hinge", "thermal", "link", "route", "call",
		"permission", "disabled", "device", "fault", "media", "audio.chunk", "video.frame")
	for i, typ := range types {
		app.send(typ, fmt.Sprintf("bad-%d", i), struct{}{})
		wantRefusal(t, app, fmt.Sprintf("bad-%d", i), glasses.CodeBadFrame)
	}
	deep := strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)
	for i, c := range []struct{ id, data string }{
		{"", "no JSON"}, {"", ""}, {"", "null"}, {"", "[]"}, {"", `"text"`}, {"", "{"}, {"", "{}"}, {"", "\xff\xfe\xfd"},
		{"", `{"v":1,"type":"display.clear","id":"` + "\xc3\x28" + `","at":0}`}, {"", `{"v":1,"type":"display.clear","at":0}`},
		{"", `{"v":1,"type":"display.clear","id":"two words","at":0}`}, {"", `{"v":1,"type":"display.clear","id":"` + strings.Repeat("i", 65) + `","at":0}`},
		{"f-1", `{"v":2,"type":"display.clear","id":"f-1","at":0}`}, {"f-2", `{"v":1,"type":"","id":"f-2","at":0}`},
		{"f-3", `{"v":1,"type":"` + strings.Repeat("t", 65) + `","id":"f-3","at":0}`}, {"f-4", `{"v":1,"type":"display.clear","id":"f-4","at":-1}`},
		{"f-5", `{"v":1,"type":"display.clear","id":"f-5","at":0,"payload":[]}`}, {"", `{"v":1,"type":"display.clear","id":"f-6","at":1e400}`},
		{"", `{"v":1,"type":"display.clear","id":"f-7","at":0,"payload":{"x":` + deep + `}}`},
	} {
		from := app.place()
		app.write(websocket.MessageText, []byte(c.data))
		f, _, ok := app.find(from, 10*time.Second, func(f appFrame) bool { return f.Type == "error" })
		if !ok || f.ID != c.id || !strings.Contains(string(f.Payload), `"bad_frame"`) {
			t.Errorf("frame %d, %.60q: got %s %q %s", i, c.data, f.Type, f.ID, f.Payload)
		}
	}
	header, _ := glasses.EncodeBinary(glasses.Frame{Type: "media", ID: "b"}, []byte("body"))
	for _, data := range [][]byte{header, {}, []byte("noise"), make([]byte, glasses.MaxFrame)} {
		from := app.place()
		app.write(websocket.MessageBinary, data)
		if _, _, ok := app.find(from, 10*time.Second, func(f appFrame) bool { return f.Type == "error" }); !ok {
			t.Error("a binary frame of an app was not refused")
		}
	}
	// An id is used once: the same frame is acknowledged again, another one refused.
	app.send("clock.sleep", "once", glasses.Sleep{})
	_, at := app.next(0, "ack", "once")
	app.next(0, "result", "once")
	app.send("clock.sleep", "once", glasses.Sleep{})
	app.next(at+1, "ack", "once")
	app.send("clock.sleep", "once", glasses.Sleep{Ms: 5})
	wantRefusal(t, app, "once", glasses.CodeIDReused)
	app.send("com.example.mine", "own", struct{}{})
	app.next(0, "ack", "own")
	other := attach(t, s.endpoint, s.secret)
	other.send("clock.sleep", "own", glasses.Sleep{})
	wantAck(t, other, "own")
	other.next(0, "result", "own")

	var got []string
	eventually(5*time.Second, func() bool { // rows are written a moment after the frames went out
		got = nil
		for _, row := range a.rows(t, s.id)[before:] {
			if id, _ := row["id"].(string); row["sender"] != "service" || row["type"] == "result" {
				got = append(got, fmt.Sprint(row["kind"], " ", id))
			}
		}
		return len(got) >= 5
	})
	if want := "[request once result once event own request own result own]"; fmt.Sprint(got) != want {
		t.Errorf("the log has %v, want %s", got, want)
	}
}

// wantAck waits until the app is told how its frame was taken, and expects no error.
func wantAck(t *testing.T, s *socket, id string) {
	t.Helper()
	f, _, ok := s.find(0, 10*time.Second, func(f appFrame) bool { return f.ID == id && f.Type != "result" })
	if !ok || f.Type != "ack" {
		t.Errorf("%s: %s %s", id, f.Type, f.Payload)
	}
}

// badTrees are answered by bad_payload before they cost anything.
func badTrees(t *testing.T, a arena, s target) {
	app := attach(t, s.endpoint, s.secret)
	nest := func(n int) string {
		return strings.Repeat(`{"type":"row","children":[`, n) + `{"type":"text"}` + strings.Repeat(`]}`, n)
	}
	for i, tree := range []string{
		nest(32), nest(2000), `{"type":"row","children":[` + strings.Repeat(`{"type":"row"},`, 500) + `{"type":"row"}]}`,
		`{"type":"column","padding":999999}`, `{"type":"row","gap":-1}`, `{"type":"image","data":"` + bomb() + `"}`, `{"type":"image","data":"%%%"}`, `[]`, `{}`, `null`,
		`{"type":"progress","value":101}`, `{"type":"row","children":{}}`, `{"type":"text","text":7}`, `{"type":"text","width":1e9}`,
	} {
		id := fmt.Sprintf("tree-%d", i)
		app.send("display.show", id, json.RawMessage(`{"tree":`+tree+`}`))
		f, _ := app.next(0, "result", id)
		if strings.Contains(tree, bomb()) && a.site != nil {
			continue // pictures are decoded by the glasses, and these are made by hand
		}
		if !strings.Contains(string(f.Payload), `"bad_payload"`) {
			t.Errorf("tree %.60s: %s", tree, f.Payload)
		}
	}
}

// bomb is a PNG of some bytes that claims to be huge.
func bomb() string {
	ihdr := append([]byte("IHDR"), 0, 0, 0xea, 0x60, 0, 0, 0xea, 0x60, 8, 6, 0, 0, 0)
	data := append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0d"), ihdr...)
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(data, 0))
}

// tooBig are frames over the limits; they end the connection.
func tooBig(t *testing.T, _ arena, s target) {
	for _, c := range []struct {
		kind websocket.MessageType
		size int
	}{{websocket.MessageText, glasses.MaxFrame + 1}, {websocket.MessageText, 3 << 20}, {websocket.MessageBinary, glasses.MaxBinary + 1}} {
		app := attach(t, s.endpoint, s.secret)
		_ = app.ws.Write(t.Context(), c.kind, bytes.Repeat([]byte(" "), c.size))
		if code := app.closed(15 * time.Second); code != websocket.StatusMessageTooBig {
			t.Errorf("%d bytes: closed with %d", c.size, code)
		}
	}
	app := attach(t, s.endpoint, s.secret) // the biggest frame that is none too big
	frame := `{"v":1,"type":"com.example.big","id":"big","at":0,"payload":{"x":"`
	app.write(websocket.MessageText, []byte(frame+strings.Repeat("x", glasses.MaxFrame-len(frame)-3)+`"}}`))
	app.next(0, "ack", "big")
}

// wrongDoors are requests by which a foreign page would come to the loopback door.
func wrongDoors(t *testing.T, a arena, s target) {
	if a.where != "local" {
		return // a backend's apps may run in pages of any site; the secret decides
	}
	u, err := url.Parse(s.endpoint)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ host, origin string }{
		{"evil.example", ""}, {"evil.example:" + u.Port(), ""}, {"localhost.evil.example", ""}, {"127.0.0.1.evil.example:" + u.Port(), ""}, {"10.0.0.1", ""},
		{u.Host, "https://evil.example"}, {u.Host, "null"}, {u.Host, "http://localhost.evil.example"}, {u.Host, "file://"},
	} {
		req, _ := http.NewRequest("GET", "http"+strings.TrimPrefix(s.endpoint, "ws"), nil)
		req.Host = c.host
		for k, v := range map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Origin": c.origin} {
			if v != "" {
				req.Header.Set(k, v)
			}
		}
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusForbidden {
			t.Errorf("host %q, origin %q: %d", c.host, c.origin, resp.StatusCode)
		}
	}
}

// barrierStorm answers barriers that nobody sent.
func barrierStorm(t *testing.T, a arena, s target) {
	app := attach(t, s.endpoint, s.secret)
	for i := range 3000 {
		app.write(websocket.MessageText, fmt.Appendf(nil, `{"v":1,"type":"barrier","id":"svc-%d","at":0,"payload":{}}`, i))
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
		t.Errorf("the log after a storm of barriers: %v", rows)
	}
}

// flood sends 10,000 frames and reads no answer meanwhile: each is acknowledged in the end, or the app is told that it is
// too slow.
func flood(t *testing.T, _ arena, s target) {
	const frames = 10_000
	app := attach(t, s.endpoint, s.secret)
	other := dial(t, s.endpoint, nil)
	other.write(websocket.MessageText, []byte(hello(s.secret)))
	for i := range frames {
		other.write(websocket.MessageText, fmt.Appendf(nil, `{"v":1,"type":"com.example.flood","id":"flood-%d","at":0,"payload":{"n":%d}}`, i, i))
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
		t.Errorf("%d of %d frames are acknowledged, and the app is still attached", acks(), frames)
	}
	if other.ended() {
		wantSlow(t, other)
	}
	app.next(0, "result", "beside")
	t.Logf("%d acknowledged, closed: %v", acks(), other.ended())
}

// eager has several apps send as fast as they are let, and read everything: they share what there is with the others.
func eager(t *testing.T, _ arena, s target) {
	const apps, frames = 4, 3000
	var all []*socket
	for range apps {
		all = append(all, attach(t, s.endpoint, s.secret))
	}
	var sending sync.WaitGroup
	for n, app := range all {
		sending.Go(func() {
			for i := range frames {
				frame := fmt.Appendf(nil, `{"v":1,"type":"clock.sleep","id":"eager-%d-%d","at":0,"payload":{"ms":0}}`, n, i)
				if app.ws.Write(t.Context(), websocket.MessageText, frame) != nil {
					return
				}
			}
		})
	}
	sending.Wait()
	for n, app := range all {
		_, _, ok := app.find(0, 20*time.Second, func(f appFrame) bool { return f.Type == "result" && f.ID == fmt.Sprintf("eager-%d-%d", n, frames-1) })
		if !ok && !app.ended() {
			frames := app.all()
			t.Errorf("app %d got no result of its last command, but %d frames; the last is %+v", n, len(frames), frames[len(frames)-1].Frame)
		} else if !ok {
			t.Logf("app %d was closed with %d after %d frames", n, app.closed(time.Second), len(app.all()))
		}
	}
}

// slowReader asks for pictures without end and takes none of them.
func slowReader(t *testing.T, a arena, s target) {
	app := dial(t, s.endpoint, nil)
	app.write(websocket.MessageText, []byte(hello(s.secret)))
	for i := range 400 {
		frame := fmt.Appendf(nil, `{"v":1,"type":"camera.photo","id":"photo-%d","at":0,"payload":{"width":3024}}`, i)
		if app.ws.Write(t.Context(), websocket.MessageText, frame) != nil {
			break
		}
		time.Sleep(5 * time.Millisecond) // it is in no hurry: only its answers are too many
	}
	app.listen()
	wantSlow(t, app)
}

// wantSlow holds how a peer that was too slow was cut off: with 1013, or without a code when it does not take that either.
func wantSlow(t *testing.T, s *socket) {
	t.Helper()
	if code := s.closed(20 * time.Second); code != websocket.StatusTryAgainLater && code != -1 {
		t.Errorf("a slow peer was closed with %d after %d frames", code, len(s.all()))
	}
}

// stubbornApp promises to answer barriers and does not: time passes all the same, and the agent is told.
func stubbornApp(t *testing.T, a arena, _ target) {
	if a.agent == nil {
		return // a browser session's time is real
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
		t.Errorf("time with an app that answers no barrier, after %v: %v", took, moved.Structured)
	}
	app.next(0, "result", "nap")
}

// noHello says nothing, or says it too late.
func noHello(t *testing.T, _ arena, s target) {
	app := dial(t, s.endpoint, nil)
	app.listen()
	began := time.Now()
	code := app.closed(15 * time.Second)
	if took := time.Since(began); code != 4400 || took < 4*time.Second || took > 8*time.Second {
		t.Errorf("an app without hello was closed with %d after %v", code, took)
	}
	if app.ws.Write(t.Context(), websocket.MessageText, []byte(hello(s.secret))) == nil {
		t.Error("a hello after the close was taken")
	}
}

// halfOpen is an app whose network is gone: it answers no ping.
func halfOpen(t *testing.T, a arena, s target) {
	app := dial(t, s.endpoint, nil)
	app.write(websocket.MessageText, []byte(hello(s.secret)))
	mustLeave(t, a, s, "app")
}

// mustLeave waits until an app or the glasses have left by themselves.
func mustLeave(t *testing.T, a arena, s target, who string) {
	t.Helper()
	began := time.Now()
	gone := func() bool {
		return slices.ContainsFunc(a.rows(t, s.id), func(row map[string]any) bool { return row["type"] == who+".detached" })
	}
	for !gone() {
		if time.Since(began) > 25*time.Second {
			t.Errorf("%s that answers no ping is attached after 25 s", who)
			return
		}
		time.Sleep(500 * time.Millisecond)
	}
}

// halfRequest begins a request and never ends it; and one speaks no WebSocket after the upgrade.
func halfRequest(t *testing.T, _ arena, s target) {
	u, err := url.Parse(s.endpoint)
	if err != nil {
		t.Error(err)
		return
	}
	start := "GET " + u.Path + " HTTP/1.1\r\nHost: " + u.Host + "\r\n"
	upgrade := "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
	for what, data := range map[string]string{"half a request": start, "noise after the upgrade": start + upgrade + strings.Repeat("\xff", 100), "no mask": start + upgrade + "\x81\x02{}"} {
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

// crowd attaches more apps than a session holds.
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
		t.Errorf("app %d of a session was closed with %d", most+1, code)
	}
	for _, app := range apps {
		_ = app.ws.CloseNow()
	}
}
