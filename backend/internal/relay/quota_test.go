package relay_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/service-dev/service/backend/internal/relay"
	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/glasses"
)

func TestNew_SetsDefaults(t *testing.T) {
	h := relay.New(relay.Options{})
	if h.FrameRate != 200 || h.FrameBurst != 400 ||
		h.Quota != (sessions.Quota{SessionRows: 100_000, SessionBytes: 64 << 20, AccountBytes: 1 << 30}) {
		t.Errorf("got %d frames per second, a burst of %d and %+v; want the defaults", h.FrameRate, h.FrameBurst, h.Quota)
	}
}

// A sender over its session's limit is slowed down. It loses no frame, and it is not considered gone although its pongs
// are queued behind its frames.
func TestRateLimit_SlowsFastSender(t *testing.T) {
	const rate, burst, frames = 100, 20, 120
	n := startNode(t, newMemory(), relay.Options{FrameRate: rate, FrameBurst: burst, PingEvery: 200 * time.Millisecond})
	app, _ := n.app(t, "")
	begun := time.Now()
	for i := range frames {
		app.send("com.example.noise", fmt.Sprint("a", i), `{}`)
	}
	for i := range frames {
		app.wantID("ack", fmt.Sprint("a", i), nil)
	}
	if took, least := time.Since(begun), time.Second*(frames-burst-1)/rate; took < least {
		t.Errorf("%d frames took %v, want at least %v", frames, took, least)
	}
}

// Streams are neither logged nor slowed down.
func TestRateLimit_ExemptsStreams(t *testing.T) {
	n := startNode(t, newMemory(), relay.Options{FrameRate: 1, FrameBurst: 10})
	app, _ := n.app(t, "")
	page, _ := n.page(t, "")
	page.want("role", nil)
	frame, err := glasses.EncodeBinary(glasses.Frame{Type: glasses.TypeVideoFrame, ID: "g-1", At: 1,
		Payload: json.RawMessage(`{"width":640,"height":480}`)}, []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	for i := range 40 {
		if err := page.ws.Write(t.Context(), websocket.MessageBinary, frame); err != nil {
			t.Fatal(err)
		}
		for kind := websocket.MessageText; kind != websocket.MessageBinary; {
			if kind, _, err = app.ws.Read(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		page.send("motion", fmt.Sprint("m", i), `{"ax":0,"ay":0,"az":1000,"gx":0,"gy":0,"gz":0}`)
		app.want("motion", nil)
	}
	if took := time.Since(begun); took > 20*time.Second {
		t.Errorf("40 frames of each stream took %v, want at most 20 s", took)
	}
}

// If a peer's cursor is before the oldest row, its welcome reports that the log is truncated, and it receives the
// remaining rows.
func TestAttach_ReportsTruncatedCursor(t *testing.T) {
	m := newMemory()
	n := startNode(t, m, relay.Options{})
	page, _ := n.page(t, "")
	page.want("role", nil)
	for i := range 5 {
		page.send("input", fmt.Sprint("p", i), `{"kind":"tap","x":1,"y":1}`)
		page.wantID("ack", fmt.Sprint("p", i), nil)
	}
	rows, _ := m.SessionEvents(t.Context(), testID, 0, 100)
	oldest := find(rows, "p3", "event").Seq
	m.trim(oldest)
	app, w := n.app(t, `,"since":0`)
	if !w.Truncated {
		t.Error("the app's welcome is not marked as truncated")
	}
	app.wantID("input", "p3", nil)
	app.wantID("input", "p4", nil)
	if _, w := n.app(t, fmt.Sprintf(`,"since":%d`, oldest-1)); w.Truncated {
		t.Error("truncated is set for a cursor right before the oldest row")
	}
	if _, w := n.app(t, ""); w.Truncated {
		t.Error("truncated is set for an app without a cursor")
	}
	if _, w := n.page(t, "?since=0"); !w.Truncated {
		t.Error("the page's welcome is not marked as truncated")
	}
	if _, w := n.page(t, fmt.Sprintf("?since=%d", oldest)); w.Truncated {
		t.Error("truncated is set for a cursor at the oldest row")
	}
}
