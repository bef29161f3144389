package relay_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/service-dev/service/backend/internal/relay"
	"github.com/service-dev/service/glasses"
)

// binary returns a binary frame as the glasses encode it.
func binary(t testing.TB, typ, id, payload string, body []byte) []byte {
	t.Helper()
	data, err := glasses.EncodeBinary(glasses.Frame{Type: typ, ID: id, At: 1, Payload: json.RawMessage(payload)}, body)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func (p *peer) blob(data []byte) {
	p.t.Helper()
	if err := p.ws.Write(p.t.Context(), websocket.MessageBinary, data); err != nil {
		p.t.Fatal(err)
	}
}

// wantBlob reads until it receives a binary message.
func (p *peer) wantBlob() []byte {
	p.t.Helper()
	for {
		kind, data, err := p.ws.Read(p.t.Context())
		if err != nil {
			p.t.Fatal(err)
		}
		if kind == websocket.MessageBinary {
			return data
		}
	}
}

func TestStream_IsRelayedAndCounted(t *testing.T) {
	m := newMemory()
	n := startNode(t, m, relay.Options{})
	page, _ := n.page(t, "")
	app, _ := n.app(t, "")
	app.ws.SetReadLimit(-1)
	app.send("video.start", "a1", `{"fps":5}`)
	page.wantID("video.start", "a1", nil)
	page.send("result", "a1", `{"ok":true}`)
	app.wantID("result", "a1", nil)
	sizes := []int{0, 1, 200, 510, 511, 512, 513, 4096, 40_000, 100_000, 1 << 20, glasses.MaxBinary - 200, 3}
	total := 0
	for i, size := range sizes {
		frame := binary(t, "video.frame", fmt.Sprint("g", i), `{"width":640,"height":480,"later":1}`,
			bytes.Repeat([]byte{byte(i + 1)}, size))
		page.blob(frame)
		if got := app.wantBlob(); !bytes.Equal(got, frame) {
			t.Fatalf("a frame of %d bytes arrived with other content and %d bytes", len(frame), len(got))
		}
		total += size
	}
	page.send("motion", "m1", `{"ax":1}`)
	app.wantID("motion", "m1", nil)
	app.send("video.stop", "a2", `{}`)
	page.wantID("video.stop", "a2", nil)
	page.send("result", "a2", `{"ok":true}`)
	var c glasses.StreamCount
	if err := json.Unmarshal(page.wantRow("stream.counted").Payload, &c); err != nil ||
		c != (glasses.StreamCount{Type: "video.frame", Frames: int64(len(sizes)), Bytes: int64(total)}) {
		t.Errorf("counted %+v (%v), want %d frames with %d bytes", c, err, len(sizes), total)
	}
	_ = page.ws.CloseNow()
	app.want("link", nil)
	n.stop()
	rows, _ := m.SessionEvents(t.Context(), testID, 0, 100)
	var types []string
	for _, e := range rows {
		types = append(types, e.Type)
		if e.Type == "stream.counted" && (e.Chip != "lifecycle" || e.Sender != "service") {
			t.Errorf("row %+v", e)
		}
	}
	got := strings.Join(types, " ")
	want := "glasses.attached app.attached video.start result video.stop result stream.counted stream.counted " +
		"glasses.detached"
	if !strings.HasPrefix(got, want) {
		t.Errorf("got rows %s\nwant prefix %s", got, want)
	}
	if find(rows, "a1", "result").Chip != "camera" {
		t.Error("want the result to have the chip of its command, camera")
	}
}

func TestStream_IsCountedWhileItRuns(t *testing.T) {
	n := startNode(t, newMemory(), relay.Options{CountEvery: 20 * time.Millisecond})
	page, _ := n.page(t, "")
	page.blob(binary(t, "audio.chunk", "g1", `{}`, make([]byte, 10)))
	var c glasses.StreamCount
	if err := json.Unmarshal(page.wantRow("stream.counted").Payload, &c); err != nil || c.Frames != 1 || c.Bytes != 10 {
		t.Errorf("counted %+v (%v), want 1 frame with 10 bytes", c, err)
	}
}

func TestMedia_ComesBeforeResult(t *testing.T) {
	n := startNode(t, newMemory(), relay.Options{})
	page, _ := n.page(t, "")
	app, _ := n.app(t, "")
	app.ws.SetReadLimit(-1)
	app.send("camera.photo", "a1", `{}`)
	page.wantID("camera.photo", "a1", nil)
	picture := binary(t, "media", "a1", `{"mime":"image/jpeg"}`, make([]byte, 300_000))
	page.blob(picture)
	page.send("result", "a1", `{"ok":true,"media":{"sha256":"00","mime":"image/jpeg","bytes":300000}}`)
	if !bytes.Equal(app.wantBlob(), picture) {
		t.Error("the app received a different picture")
	}
	var res glasses.Result
	app.wantID("result", "a1", &res)
	if res.Media == nil || res.Media.Bytes != 300_000 {
		t.Errorf("result %+v", res)
	}
}

func TestBinaryFrame_IsRefused(t *testing.T) {
	n := startNode(t, newMemory(), relay.Options{})
	page, _ := n.page(t, "")
	app, _ := n.app(t, "")
	for _, frame := range [][]byte{nil, {0}, {0xff, 0xff}, {0, 2, '{', '}'}, binary(t, "input", "x", `{}`, nil),
		binary(t, "display.show", "x", `{}`, nil)} {
		page.blob(frame)
		var e glasses.Error
		page.want("error", &e)
		if e.Code != "bad_frame" || e.Message == "" {
			t.Errorf("%x: %+v", frame, e)
		}
	}
	page.send("video.frame", "t1", `{}`)
	page.wantID("error", "t1", nil)
	app.blob(binary(t, "video.frame", "x", `{}`, nil))
	var e glasses.Error
	app.want("error", &e)
	if e.Code != "bad_frame" || !strings.Contains(e.Message, "must be playback.chunk") {
		t.Errorf("a binary frame from an app: got %+v, want bad_frame", e)
	}
	page.bytes(`{"v":1,"type":"x","id":"big","at":0,"payload":{"a":"` + strings.Repeat("x", glasses.MaxFrame) + `"}}`)
	page.wantClose(websocket.StatusMessageTooBig, "")
	page, _ = n.page(t, "")
	page.blob(make([]byte, glasses.MaxBinary+1))
	page.wantClose(websocket.StatusMessageTooBig, "")
}

// Sound from an app reaches only the page that acts as the glasses, and is counted.
func TestPlayback_ReachesTheGlasses(t *testing.T) {
	n := startNode(t, newMemory(), relay.Options{})
	app, _ := n.app(t, "")
	chunk := binary(t, "playback.chunk", "a2", `{"playback":"a1"}`, bytes.Repeat([]byte{7}, glasses.MaxPlaybackChunk))
	app.blob(chunk) // no page is attached
	broken := func(id string) {
		app.blob(binary(t, "playback.chunk", id, `{"playback":"a1"}`, []byte{1, 2, 3}))
		app.wantID("error", id, nil)
	}
	broken("a0") // the chunk was handled
	onlooker, _ := n.page(t, "")
	page, _ := n.page(t, "")
	app.send("playback.start", "a1", `{}`)
	page.wantID("playback.start", "a1", nil)
	broken("a3")
	app.blob(chunk)
	if got := page.wantBlob(); !bytes.Equal(got, chunk) {
		t.Errorf("the page received %x, want the chunk", got)
	}
	page.send("result", "a1", `{"ok":true}`)
	app.wantID("result", "a1", nil)
	app.send("playback.flush", "a4", `{}`)
	onlooker.wantID("playback.flush", "a4", nil)
	page.wantID("playback.flush", "a4", nil)
	page.send("result", "a4", `{"ok":true,"playedMs":0}`)
	var c glasses.StreamCount
	want := glasses.StreamCount{Type: "playback.chunk", Frames: 1, Bytes: glasses.MaxPlaybackChunk}
	if err := json.Unmarshal(page.wantRow("stream.counted").Payload, &c); err != nil || c != want {
		t.Errorf("counted %+v (%v), want %+v", c, err, want)
	}
}

// An app that does not read loses only stream frames, and delays no other app.
func TestStalledApp_LosesOnlyStreamFrames(t *testing.T) {
	n := startNode(t, newMemory(), relay.Options{PingEvery: time.Hour}) // a stalled app answers no ping
	page, _ := n.page(t, "")
	stalled, _ := n.app(t, "")
	stalled.ws.SetReadLimit(-1)
	lively, _ := n.app(t, "")
	lively.ws.SetReadLimit(-1)
	const frames = 300
	unread := make(chan struct{}, 8) // limits how far the page is ahead of the reading app, even on a busy machine
	got := make(chan int, 1)
	go func() {
		count := 0
		for {
			kind, data, err := lively.ws.Read(t.Context())
			if err != nil || bytes.Contains(data, []byte(`"last"`)) {
				got <- count
				return
			}
			if kind == websocket.MessageBinary {
				count++
				<-unread
			}
		}
	}()
	for i := range frames {
		select {
		case unread <- struct{}{}:
		case <-time.After(time.Minute):
			t.Fatalf("the app that reads did not get the first %d frames", i)
		}
		page.blob(binary(t, "video.frame", fmt.Sprint("g", i), `{}`, make([]byte, 100_000)))
	}
	page.send("input", "last", `{"kind":"tap","x":1,"y":1}`)
	if count := <-got; count != frames {
		t.Errorf("the app that reads got %d of %d frames, want all", count, frames)
	}
	if n.Dropped() == 0 {
		t.Error("no frame was dropped for the app that does not read")
	}
	stalled.wantText("last")
}

// wantText reads until it receives a text frame with this ID, and skips binary messages.
func (p *peer) wantText(id string) {
	p.t.Helper()
	for {
		kind, data, err := p.ws.Read(p.t.Context())
		if err != nil {
			p.t.Fatal(err)
		}
		var f glasses.Frame
		if kind == websocket.MessageText && json.Unmarshal(data, &f) == nil && f.ID == id {
			return
		}
	}
}

func TestNewestPage_IsPlayer(t *testing.T) {
	m := newMemory()
	n := startNode(t, m, relay.Options{})
	role := func(p *peer) bool {
		t.Helper()
		var r glasses.Role
		p.want("role", &r)
		return r.Active
	}
	first, _ := n.page(t, "")
	if !role(first) {
		t.Error("the only page is not active")
	}
	app, _ := n.app(t, "")
	app.send("display.clear", "a0", `{}`)
	first.wantID("display.clear", "a0", nil)
	second, _ := n.page(t, "")
	if !role(second) || role(first) {
		t.Error("the newest page is not the only active page")
	}
	// The first page may still answer a command it received before the takeover.
	first.send("result", "a0", `{"ok":true}`)
	app.wantID("result", "a0", nil)
	// The observing page draws as well, but its answers are refused.
	app.send("display.show", "a1", hello)
	first.wantID("display.show", "a1", nil)
	second.wantID("display.show", "a1", nil)
	first.send("result", "a1", `{"error":{"code":"busy","message":"x"}}`)
	first.wantID("error", "a1", nil)
	first.send("input", "i1", `{"kind":"tap","x":1,"y":1}`)
	first.wantID("error", "i1", nil)
	first.blob(binary(t, "video.frame", "g1", `{}`, []byte("mirror")))
	first.send("input", "i2", `{"kind":"tap","x":1,"y":1}`) // when this is refused, the stream frame has been handled
	first.wantID("error", "i2", nil)
	second.blob(binary(t, "video.frame", "g2", `{}`, []byte("glasses")))
	if got := app.wantBlob(); !bytes.HasSuffix(got, []byte("glasses")) {
		t.Errorf("the app received %q, want the frame from the glasses", got)
	}
	// The successor receives the commands that the leaving page has not answered.
	_ = second.ws.CloseNow()
	if !role(first) {
		t.Error("no page is active after the newest page has left")
	}
	first.wantID("display.show", "a1", nil)
	first.send("result", "a1", `{"ok":true}`)
	var res glasses.Result
	app.wantID("result", "a1", &res)
	if !res.OK {
		t.Errorf("result %+v", res)
	}
}

func TestEvents_UpdateState(t *testing.T) {
	m := newMemory()
	n := startNode(t, m, relay.Options{})
	page, _ := n.page(t, "")
	app, w := n.app(t, "")
	for typ, payload := range map[string]string{
		"transcript": `{"text":"hi","final":true}`, "battery": `{"level":9,"charging":false}`, "wear": `{"worn":false}`,
		"hinge": `{"state":"folded"}`,
		"fault": `{"code":"busy","times":1}`, "speech": `{"id":"a","state":"finished"}`, "link": `{"state":"lost"}`,
		"device": `{"deviceModel":{"id":"even_g1","name":"x"}}`,
	} {
		page.send(typ, "g-"+typ, payload)
		page.wantID("ack", "g-"+typ, nil)
	}
	seen := map[string]bool{}
	for len(seen) < 8 {
		f, err := app.next()
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(f.ID, "g-") {
			seen[f.Type] = true
		}
	}
	late, w2 := n.app(t, fmt.Sprintf(`,"since":%d`, w.LastSeq))
	if w2.DeviceModel.ID != "even_g1" || w2.Link != "lost" {
		t.Errorf("a later app received %s, %s; want even_g1, lost", w2.DeviceModel.ID, w2.Link)
	}
	for range 8 {
		isReplayed := func(f glasses.Frame) bool { return f.Seq > 0 }
		if f := late.find(isReplayed, "a replayed event", nil); !strings.HasPrefix(f.ID, "g-") {
			t.Errorf("replayed %+v", f)
		}
	}
	for _, bad := range []string{`{"deviceModel":{"id":"nobody"}}`, `{}`} {
		page.send("device", "bad"+fmt.Sprint(len(bad)), bad)
		var e glasses.Error
		page.want("error", &e)
		if e.Code != "bad_payload" {
			t.Errorf("%s: %+v", bad, e)
		}
	}
}

func TestCommand_MayTakeItsOwnTime(t *testing.T) {
	n := startNode(t, newMemory(), relay.Options{BeatEvery: 10 * time.Millisecond, CommandWait: 30 * time.Millisecond})
	page, _ := n.page(t, "")
	app, _ := n.app(t, "")
	app.send("clock.sleep", "long", `{"ms":60000}`)
	app.send("camera.video", "video", `{"durationMs":30000}`)
	app.send("clock.sleep", "short", `{"ms":1}`)
	var r glasses.Result
	if f := app.want("result", &r); f.ID != "short" || r.Error == nil || r.Error.Code != "timeout" {
		t.Errorf("%s: %+v", f.ID, r)
	}
	for _, id := range []string{"long", "video"} {
		page.send("result", id, `{"ok":true}`)
		var r glasses.Result
		app.wantID("result", id, &r)
		if !r.OK {
			t.Errorf("%s: %+v", id, r)
		}
	}
	page.send("result", "short", `{"ok":true}`)
	var e glasses.Error
	page.wantID("error", "short", &e)
	if e.Code != "timeout" {
		t.Errorf("a late result: got %+v, want timeout", e)
	}
	for i, bad := range []string{`{"ms":-1}`, `{"ms":600001}`, `{"ms":"1"}`} {
		app.send("clock.sleep", fmt.Sprint("bad", i), bad)
		var r glasses.Result
		app.wantID("result", fmt.Sprint("bad", i), &r)
		if r.Error == nil || r.Error.Code != "bad_payload" {
			t.Errorf("%s: %+v", bad, r)
		}
	}
}
