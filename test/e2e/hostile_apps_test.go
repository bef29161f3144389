//go:build unix

package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/service-dev/service/glasses"
)

func hello(secret string) string {
	return fmt.Sprintf(`{"v":1,"type":"hello","id":"h","at":0,"payload":{"secret":%q,"app":{"name":"Hostile"}}}`,
		secret)
}

// badHellos sends first frames that must be refused, each with the expected close code.
func badHellos(t *testing.T, _ arena, s target) {
	other := strings.Replace(s.endpoint, s.id, s.id[:4]+strings.Repeat("a", len(s.id)-4), 1)
	for _, c := range []struct {
		name, endpoint, first string
		kind                  websocket.MessageType
		want                  websocket.StatusCode
	}{
		{"a wrong secret", s.endpoint, hello("wrong"), websocket.MessageText, 4401},
		{"a secret of no session", other, hello(s.secret), websocket.MessageText, 4401},
		{"a command", s.endpoint, `{"v":1,"type":"display.clear","id":"h","at":0,"payload":{}}`,
			websocket.MessageText, 4400},
		{"no secret", s.endpoint, hello(""), websocket.MessageText, 4400},
		{"a secret of 300 characters", s.endpoint, hello(strings.Repeat("s", 300)), websocket.MessageText, 4400},
		{"no name", s.endpoint, `{"v":1,"type":"hello","id":"h","at":0,"payload":{"secret":"x","app":{}}}`,
			websocket.MessageText, 4400},
		{"a cursor before the beginning", s.endpoint,
			`{"v":1,"type":"hello","id":"h","at":0,"payload":{"secret":"x","app":{"name":"a"},"since":-1}}`, websocket.MessageText, 4400},
		{"no JSON", s.endpoint, "hello", websocket.MessageText, 4400},
		{"nothing", s.endpoint, "", websocket.MessageText, 4400},
		{"noise", s.endpoint, "\x00\x01\xff", websocket.MessageBinary, 4400},
		{"another version", s.endpoint, `{"v":2,"type":"hello","id":"h","at":0,"payload":{}}`, websocket.MessageText,
			4400},
		{"a huge hello", s.endpoint, hello(s.secret) + strings.Repeat(" ", glasses.MaxHello), websocket.MessageText,
			1009},
		{"a hello of megabytes", s.endpoint, strings.Repeat(" ", 3<<20), websocket.MessageText, 1009},
	} {
		app := dial(t, c.endpoint, nil)
		app.listen()
		_ = app.ws.Write(t.Context(), c.kind, []byte(c.first)) // the connection may already be closed
		if code := app.closed(10 * time.Second); code != c.want {
			t.Errorf("%s: closed with %d, want %d", c.name, code, c.want)
		}
	}
}

// refusedTypes returns the frame types that neither app nor page may send.
func refusedTypes() []string {
	return []string{"hello", "welcome", "ack", "error", "row", "cursor", "peers", "role", "beat",
		"sim.input", "sim.transcript", "sim.state", "sim.motion", "sim.fault", "sim.device", "sim.camera", "sim.microphone", "sim.advance",
		"sim.standing"}
}

func wantRefusal(t *testing.T, s *socket, id, code string) {
	t.Helper()
	f, _, ok := s.find(0, 10*time.Second, func(f appFrame) bool { return f.Type == "error" && f.ID == id })
	var e glasses.Error
	if err := json.Unmarshal(f.Payload, &e); !ok || err != nil || e.Code != code || e.Message == "" {
		t.Errorf("%s: want error %s, got %s", id, code, f.Payload)
	}
}

// badFrames sends invalid frames: each is refused, and the log contains only valid ones.
func badFrames(t *testing.T, a arena, s target) {
	before := len(a.rows(t, s.id))
	app := attach(t, s.endpoint, s.secret)
	types := append(refusedTypes(), "result", "input", "transcript", "speech", "motion", "battery", "wear", "hinge",
		"thermal", "link", "route", "call",
		"permission", "disabled", "device", "fault", "media", "audio.chunk", "video.frame")
	for i, typ := range types {
		app.send(typ, fmt.Sprintf("bad-%d", i), struct{}{})
		wantRefusal(t, app, fmt.Sprintf("bad-%d", i), glasses.CodeBadFrame)
	}
	deep := strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)
	for i, c := range []struct{ id, data string }{
		{"", "no JSON"}, {"", ""}, {"", "null"}, {"", "[]"}, {"", `"text"`}, {"", "{"}, {"", "{}"},
		{"", "\xff\xfe\xfd"},
		{"", `{"v":1,"type":"display.clear","id":"` + "\xc3\x28" + `","at":0}`},
		{"", `{"v":1,"type":"display.clear","at":0}`},
		{"", `{"v":1,"type":"display.clear","id":"two words","at":0}`},
		{"", `{"v":1,"type":"display.clear","id":"` + strings.Repeat("i", 65) + `","at":0}`},
		{"f-1", `{"v":2,"type":"display.clear","id":"f-1","at":0}`}, {"f-2", `{"v":1,"type":"","id":"f-2","at":0}`},
		{"f-3", `{"v":1,"type":"` + strings.Repeat("t", 65) + `","id":"f-3","at":0}`},
		{"f-4", `{"v":1,"type":"display.clear","id":"f-4","at":-1}`},
		{"f-5", `{"v":1,"type":"display.clear","id":"f-5","at":0,"payload":[]}`},
		{"", `{"v":1,"type":"display.clear","id":"f-6","at":1e400}`},
		{"", `{"v":1,"type":"display.clear","id":"f-7","at":0,"payload":{"x":` + deep + `}}`},
	} {
		from := app.place()
		app.write(websocket.MessageText, []byte(c.data))
		f, _, ok := app.find(from, 10*time.Second, func(f appFrame) bool { return f.Type == "error" })
		if !ok || f.ID != c.id || !strings.Contains(string(f.Payload), `"bad_frame"`) {
			t.Errorf("frame %d, %.60q: got %s %q %s, want a bad_frame error", i, c.data, f.Type, f.ID, f.Payload)
		}
	}
	header, _ := glasses.EncodeBinary(glasses.Frame{Type: "media", ID: "b"}, []byte("body"))
	for _, data := range [][]byte{header, {}, []byte("noise"), make([]byte, glasses.MaxFrame)} {
		from := app.place()
		app.write(websocket.MessageBinary, data)
		if _, _, ok := app.find(from, 10*time.Second, func(f appFrame) bool { return f.Type == "error" }); !ok {
			t.Error("an app's binary frame was not refused")
		}
	}
	// An id can be used only once: an identical frame is acknowledged again, and a different frame with the same id
	// is refused.
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
	eventually(5*time.Second, func() bool { // rows are written shortly after the frames were sent
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

// wantAck waits until a frame is acknowledged. It fails on an error.
func wantAck(t *testing.T, s *socket, id string) {
	t.Helper()
	f, _, ok := s.find(0, 10*time.Second, func(f appFrame) bool { return f.ID == id && f.Type != "result" })
	if !ok || f.Type != "ack" {
		t.Errorf("frame %s: got %s %s, want ack", id, f.Type, f.Payload)
	}
}

// badTrees sends trees that the service must refuse as bad_payload before it processes them.
func badTrees(t *testing.T, a arena, s target) {
	app := attach(t, s.endpoint, s.secret)
	nest := func(n int) string {
		return strings.Repeat(`{"type":"row","children":[`, n) + `{"type":"text"}` + strings.Repeat(`]}`, n)
	}
	for i, tree := range []string{
		nest(32), nest(2000), `{"type":"row","children":[` + strings.Repeat(`{"type":"row"},`,
			500) + `{"type":"row"}]}`,
		`{"type":"column","padding":999999}`, `{"type":"row","gap":-1}`, `{"type":"image","data":"` + bomb() + `"}`, `{"type":"image","data":"%%%"}`, `[]`, `{}`, `null`,
		`{"type":"progress","value":101}`, `{"type":"row","children":{}}`, `{"type":"text","text":7}`, `{"type":"text","width":1e9}`,
	} {
		id := fmt.Sprintf("tree-%d", i)
		app.send("display.show", id, json.RawMessage(`{"tree":`+tree+`}`))
		if len(tree) > 50_000 { // nested too deeply for a frame
			wantRefusal(t, app, id, glasses.CodeBadFrame)
			continue
		}
		f, _ := app.next(0, "result", id)
		if strings.Contains(tree, bomb()) && a.site != nil {
			continue // the glasses decode pictures, and the glasses of this arena are scripted
		}
		if !strings.Contains(string(f.Payload), `"bad_payload"`) {
			t.Errorf("tree %.60s: got %s, want bad_payload", tree, f.Payload)
		}
	}
}

// bomb returns a small PNG that declares a huge size.
func bomb() string {
	ihdr := append([]byte("IHDR"), 0, 0, 0xea, 0x60, 0, 0, 0xea, 0x60, 8, 6, 0, 0, 0)
	data := append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0d"), ihdr...)
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(data, 0))
}

// tooBig sends frames over the limits, which end the connection.
func tooBig(t *testing.T, _ arena, s target) {
	for _, c := range []struct {
		kind websocket.MessageType
		size int
	}{{websocket.MessageText, glasses.MaxFrame + 1}, {websocket.MessageText, 3 << 20},
		{websocket.MessageBinary, glasses.MaxBinary + 1}} {
		app := attach(t, s.endpoint, s.secret)
		_ = app.ws.Write(t.Context(), c.kind, bytes.Repeat([]byte(" "), c.size))
		if code := app.closed(15 * time.Second); code != websocket.StatusMessageTooBig {
			t.Errorf("frame of %d bytes: closed with %d, want \"message too big\"", c.size, code)
		}
	}
	app := attach(t, s.endpoint, s.secret) // the largest allowed frame
	frame := `{"v":1,"type":"com.example.big","id":"big","at":0,"payload":{"x":"`
	app.write(websocket.MessageText, []byte(frame+strings.Repeat("x", glasses.MaxFrame-len(frame)-3)+`"}}`))
	app.next(0, "ack", "big")
}

// foreignRequests sends requests that a foreign web page could send to the loopback endpoint.
func foreignRequests(t *testing.T, a arena, s target) {
	if a.where != "local" {
		return // apps of a backend may run on pages of any site; they are authenticated only by the secret
	}
	u, err := url.Parse(s.endpoint)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ host, origin string }{
		{"evil.example", ""}, {"evil.example:" + u.Port(), ""},
		{"localhost.evil.example", ""}, {"127.0.0.1.evil.example:" + u.Port(), ""}, {"10.0.0.1", ""},
		{u.Host, "https://evil.example"}, {u.Host, "null"}, {u.Host, "http://localhost.evil.example"},
		{u.Host, "file://"},
	} {
		req, _ := http.NewRequest("GET", "http"+strings.TrimPrefix(s.endpoint, "ws"), nil)
		req.Host = c.host
		for k, v := range map[string]string{"Connection": "Upgrade", "Upgrade": "websocket",
			"Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Origin": c.origin} {
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
			t.Errorf("host %q, origin %q: status %d, want 403", c.host, c.origin, resp.StatusCode)
		}
	}
}
