package relay_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/service-dev/service/backend/internal/relay"
	"github.com/service-dev/service/glasses"
)

const hello = `{"tree":{"type":"text","text":"Hello"}}`

func TestHub_RelaysCommandsAndEvents(t *testing.T) {
	m := newMemory()
	n := startNode(t, m, relay.Options{})
	page, _ := n.page(t, "")
	app, w := n.app(t, "")
	if w.Link != "connected" || w.DeviceModel.Panel == nil || w.DeviceModel.Panel.Width != 600 {
		t.Errorf("welcome = %+v", w)
	}

	app.bytes(`{"v":1,"type":"display.show","id":"a1","at":5,"payload":` + hello + `,"later":true}`)
	page.wantID("display.show", "a1", nil)
	page.send("result", "a1", `{"ok":true}`)
	var res glasses.Result
	app.wantID("result", "a1", &res)
	if !res.OK {
		t.Errorf("result = %+v", res)
	}

	page.send("input", "p1", `{"kind":"tap","x":10,"y":20,"pressure":3}`)
	var in map[string]any
	app.wantID("input", "p1", &in)
	if in["x"] != 10.0 || in["pressure"] != 3.0 {
		t.Errorf("got input %v, want the unknown fields preserved", in)
	}
	var ack glasses.Ack
	page.wantID("ack", "p1", &ack)
	rows, _ := m.SessionEvents(t.Context(), testID, 0, 100)
	if got := rows[ack.Seq-1]; got.Type != "input" || got.Kind != "event" || got.Sender != "glasses" ||
		got.Chip != "display" {
		t.Errorf("row = %+v", got)
	}
	request, result := find(rows, "a1", "request"), find(rows, "a1", "result")
	if request.Sender != "app" || result.Sender != "glasses" || result.Chip != "display" {
		t.Errorf("rows with the same ID: got %+v and %+v, want a request of the app and a result of the glasses",
			request, result)
	}
	live := n.Attached(testID)
	if len(live.Apps) != 1 || live.Apps[0].Name != "Test app" || live.Pages != 1 {
		t.Errorf("Attached returned %+v, want one app and one page", live)
	}
	if mine, others := n.WithApps("ada"), n.WithApps("another account"); len(mine) != 1 || mine[0] != testID ||
		len(others) != 0 {
		t.Errorf("WithApps returned %v, and %v for another account, want the session only for its own", mine, others)
	}
}

func find(rows []glasses.Event, id, kind string) glasses.Event {
	for _, e := range rows {
		if e.ID == id && e.Kind == kind {
			return e
		}
	}
	return glasses.Event{}
}

func TestCommand_IsAlwaysAnswered(t *testing.T) {
	n := startNode(t, newMemory(), relay.Options{BeatEvery: 20 * time.Millisecond, CommandWait: 30 * time.Millisecond})
	app, w := n.app(t, "")
	if w.Link != "disconnected" {
		t.Errorf("link is %q, want disconnected", w.Link)
	}
	answer := func(id string) string {
		t.Helper()
		var r glasses.Result
		app.wantID("result", id, &r)
		if r.Error == nil {
			t.Fatalf("%s: got no error, want one", id)
		}
		return r.Error.Code
	}
	app.send("display.show", "a1", hello)
	if c := answer("a1"); c != "not_connected" {
		t.Errorf("without a page: got %s, want not_connected", c)
	}
	page, _ := n.page(t, "")
	app.want("link", nil)
	app.send("display.show", "a2", `{"tree":{"text":"no type"}}`)
	if c := answer("a2"); c != "bad_payload" {
		t.Errorf("bad tree: got %s, want bad_payload", c)
	}
	app.send("display.clear", "a3", `{}`)
	if c := answer("a3"); c != "timeout" {
		t.Errorf("page that does not answer: got %s, want timeout", c)
	}
	_ = page
}

func TestCommand_FailsWhenGlassesLeave(t *testing.T) {
	n := startNode(t, newMemory(), relay.Options{})
	page, _ := n.page(t, "")
	app, _ := n.app(t, "")
	app.send("display.show", "a1", hello)
	page.wantID("display.show", "a1", nil)
	_ = page.ws.CloseNow()
	var r glasses.Result
	app.wantID("result", "a1", &r)
	if r.Error == nil || r.Error.Code != "not_connected" {
		t.Errorf("result = %+v", r)
	}
	var l glasses.LinkState
	app.want("link", &l)
	if l.State != "disconnected" {
		t.Errorf("link = %+v", l)
	}
}

func TestRepeatedFrame_IsOnlyAcknowledged(t *testing.T) {
	n := startNode(t, newMemory(), relay.Options{})
	page, _ := n.page(t, "")
	app, _ := n.app(t, "")
	var first, second glasses.Ack
	page.send("input", "p1", `{"kind":"tap","x":1,"y":1}`)
	page.wantID("ack", "p1", &first)
	page.send("input", "p1", `{ "kind":"tap","x":1,"y":1}`)
	page.wantID("ack", "p1", &second)
	if first != second {
		t.Errorf("got acks %+v and %+v, want them equal", first, second)
	}
	page.send("input", "p2", `{"kind":"tap","x":2,"y":2}`)
	app.wantID("input", "p1", nil)
	if f := app.find(func(f glasses.Frame) bool { return f.Type == "input" }, "input", nil); f.ID != "p2" {
		t.Errorf("the app received %s twice", f.ID)
	}
	page.send("input", "p1", `{"kind":"tap","x":9,"y":9}`)
	var e glasses.Error
	page.wantID("error", "p1", &e)
	if e.Code != "id_reused" {
		t.Errorf("error = %+v", e)
	}
}

func TestHub_LosesNothingOverRestart(t *testing.T) {
	m := newMemory()
	n := startNode(t, m, relay.Options{})
	page, _ := n.page(t, "")
	app, _ := n.app(t, "")
	app.send("display.show", "a1", hello)
	page.wantID("display.show", "a1", nil)
	page.send("result", "a1", `{"ok":true}`)
	app.wantID("result", "a1", nil)
	var cursor glasses.Cursor
	page.send("input", "p1", `{"kind":"tap","x":1,"y":1}`)
	app.wantID("input", "p1", nil)
	app.want("cursor", &cursor)
	last := page.wantRow("input").Seq
	var ended sync.WaitGroup
	ended.Go(func() { // peers must read for the closing handshake
		for err := error(nil); err == nil; {
			_, err = app.next()
		}
	})
	ended.Go(n.end)
	page.wantClose(websocket.StatusServiceRestart, "restarting")
	ended.Wait()

	n = startNode(t, m, relay.Options{})
	page, w := n.page(t, fmt.Sprintf("?since=%d", last))
	if string(w.Display) != hello {
		t.Errorf("after the restart the display is %s, want the one before it", w.Display)
	}
	seen := page.wantRow("glasses.attached")
	if seen.Seq <= last {
		t.Errorf("got seq %d after %d, want a higher one", seen.Seq, last)
	}
	page.send("input", "p1", `{"kind":"tap","x":1,"y":1}`)
	var ack glasses.Ack
	page.wantID("ack", "p1", &ack)
	if ack.Seq != last {
		t.Errorf("a frame sent again became row %d, want %d", ack.Seq, last)
	}
	page.send("input", "p2", `{"kind":"tap","x":2,"y":2}`)
	page.wantID("ack", "p2", nil)
	app, _ = n.app(t, fmt.Sprintf(`,"since":%d`, last))
	if f := app.want("input", nil); f.ID != "p2" || f.Seq == 0 {
		t.Errorf("replayed %+v", f)
	}
	rows, _ := m.SessionEvents(t.Context(), testID, 0, 1000)
	for i, e := range rows {
		if e.Seq != int64(i+1) {
			t.Fatalf("row with index %d has seq %d, want no gap", i, e.Seq)
		}
	}
}

func TestClosed_EndsEveryPeer(t *testing.T) {
	m := newMemory()
	n := startNode(t, m, relay.Options{})
	page, _ := n.page(t, "")
	app, _ := n.app(t, "")
	m.close()
	n.Closed(testID)
	app.wantClose(4410, "closed")
	page.wantClose(4410, "closed")
	late := n.raw(t)
	late.send("hello", "h", `{"secret":"right","app":{"name":"x"}}`)
	late.wantClose(4410, "closed")
}

func TestServeApp_RefusesBadHello(t *testing.T) {
	n := startNode(t, newMemory(), relay.Options{HelloWait: 150 * time.Millisecond})
	for name, c := range map[string]struct {
		frame string
		code  websocket.StatusCode
	}{
		"nothing":      {"", 4400},
		"no JSON":      {"hi", 4400},
		"not hello":    {`{"v":1,"type":"display.clear","id":"1","at":0,"payload":{}}`, 4400},
		"no app":       {`{"v":1,"type":"hello","id":"1","at":0,"payload":{"secret":"right"}}`, 4400},
		"wrong secret": {`{"v":1,"type":"hello","id":"1","at":0,"payload":{"secret":"wrong","app":{"name":"x"}}}`, 4401},
		"too big": {`{"v":1,"type":"hello","id":"1","at":0,"payload":{"secret":"` + strings.Repeat("x", 5000) + `"}}`,
			1009},
	} {
		t.Run(name, func(t *testing.T) {
			p := n.raw(t)
			if c.frame != "" {
				p.bytes(c.frame)
			}
			p.wantClose(c.code, "")
		})
	}
	p := n.dial(t, "/api/sessions/ses_unknown/app", nil)
	p.send("hello", "1", `{"secret":"right","app":{"name":"x"}}`)
	p.wantClose(4401, "secret")
	if n.Connections() != 0 {
		t.Errorf("%d connections remain, want 0", n.Connections())
	}
}

func TestBadFrame_DoesNotEndConnection(t *testing.T) {
	n := startNode(t, newMemory(), relay.Options{})
	page, _ := n.page(t, "")
	app, _ := n.app(t, "")
	for _, frame := range []string{
		"not json", "[]", `{"v":2,"type":"x","id":"b1","at":0}`, `{"v":1,"type":"x","at":0}`,
		`{"v":1,"type":"welcome","id":"b2","at":0}`, `{"v":1,"type":"input","id":"b3","at":0,"payload":{}}`,
		`{"v":1,"type":"result","id":"b4","at":0,"payload":{"ok":true}}`, "{\"v\":1,\"type\":\"x\",\"id\":\"\xff\"}",
	} {
		app.bytes(frame)
		var e glasses.Error
		app.want("error", &e)
		if e.Code != "bad_frame" || e.Message == "" {
			t.Errorf("%s: %+v", frame, e)
		}
	}
	page.send("display.show", "b5", hello)
	page.wantID("error", "b5", nil)
	if err := app.ws.Write(t.Context(), websocket.MessageBinary, []byte{1, 2}); err != nil {
		t.Fatal(err)
	}
	app.want("error", nil)

	app.send("com.example.thing", "c1", `{"n":1}`)
	app.wantID("ack", "c1", nil)
	if e := page.wantRow("com.example.thing"); e.Chip != "custom" || e.Kind != "event" {
		t.Errorf("row = %+v", e)
	}
	app.bytes(`{"v":1,"type":"x","id":"big","at":0,"payload":{"a":"` + strings.Repeat("x", glasses.MaxFrame) + `"}}`)
	app.wantClose(websocket.StatusMessageTooBig, "")
}

func TestSlowStore_SlowsSenders(t *testing.T) {
	m := newMemory()
	n := startNode(t, m, relay.Options{QueueSize: 4, OutboxSize: 4096})
	page, _ := n.page(t, "")
	page.wantRow("glasses.attached")
	gate := make(chan struct{})
	m.mu.Lock()
	m.gate = gate
	m.mu.Unlock()
	const taps = 300
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for i := range taps {
			frame, _ := json.Marshal(map[string]any{"v": 1, "type": "input", "id": fmt.Sprint("t", i), "at": 1,
				"payload": map[string]any{"kind": "tap", "pad": strings.Repeat("x", 20000)}})
			if page.ws.Write(t.Context(), websocket.MessageText, frame) != nil {
				return
			}
		}
	}()
	// The store is blocked and 6 MB exceed its buffers, so the writer must block until the gate opens.
	select {
	case <-sent:
		t.Error("the page could send everything while the store was blocked")
	case <-time.After(300 * time.Millisecond):
	}
	close(gate)
	for i := range taps {
		page.wantID("ack", fmt.Sprint("t", i), nil)
	}
	<-sent
}

// A disk that stalls for a moment must not make a page lose its connection: the rows of several commits, and the
// acknowledgements, then reach its queue at once.
func TestSlowStore_KeepsPeers(t *testing.T) {
	m := newMemory()
	n := startNode(t, m, relay.Options{})
	page, _ := n.page(t, "")
	page.wantRow("glasses.attached")
	app, _ := n.app(t, "")
	page.wantRow("app.attached")
	gate := make(chan struct{})
	m.mu.Lock()
	m.gate = gate
	m.mu.Unlock()
	const taps = 350
	for i := range taps {
		page.send("input", fmt.Sprint("t", i), `{"kind":"tap"}`)
	}
	app.wantID("input", fmt.Sprint("t", taps-1), nil) // apps get events before they are stored
	close(gate)
	for i := range taps {
		page.wantID("ack", fmt.Sprint("t", i), nil)
	}
}

func TestWriter_CutsOffSenderOfBadRow(t *testing.T) {
	m := newMemory()
	n := startNode(t, m, relay.Options{RetryPause: time.Millisecond})
	page, _ := n.page(t, "")
	page.wantRow("glasses.attached")
	m.mu.Lock()
	m.refuse = errors.New("disk full")
	m.mu.Unlock()
	page.send("input", "p1", `{"kind":"tap","x":1,"y":1}`)
	page.wantClose(websocket.StatusInternalError, "send it again")
	m.mu.Lock()
	m.refuse = nil
	m.mu.Unlock()
	page, _ = n.page(t, "")
	page.send("input", "p1", `{"kind":"tap","x":1,"y":1}`)
	page.wantID("ack", "p1", nil)
}

func TestSwitched_TellsBothSides(t *testing.T) {
	n := startNode(t, newMemory(), relay.Options{})
	page, _ := n.page(t, "")
	app, _ := n.app(t, "")
	n.Switched(t.Context(), testID, "even_g1")
	for _, p := range []*peer{page, app} {
		var d glasses.DeviceChange
		p.want("device", &d)
		if d.DeviceModel.ID != "even_g1" {
			t.Errorf("device = %+v", d)
		}
	}
}
