package relay_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/coder/websocket"

	"github.com/service-dev/service/backend/internal/relay"
	"github.com/service-dev/service/glasses"
)

// The page that takes over receives the unanswered commands in the app's order, so that the last display wins.
func TestHandOver_KeepsOrder(t *testing.T) {
	n := startNode(t, newMemory(), relay.Options{})
	next, _ := n.page(t, "")
	page, _ := n.page(t, "")
	app, _ := n.app(t, "")
	for i := range 12 {
		typ, payload := "display.show", hello
		if i%3 == 0 {
			typ, payload = "clock.sleep", `{"ms":5000}`
		}
		app.send(typ, fmt.Sprint("a", i), payload)
		page.wantID(typ, fmt.Sprint("a", i), nil)
		next.wantID(typ, fmt.Sprint("a", i), nil) // an observing page receives commands too
	}
	_ = page.ws.CloseNow()
	for i := range 12 {
		f := next.find(func(f glasses.Frame) bool { return glasses.IsCommand(f.Type) }, "a command", nil)
		if f.ID != fmt.Sprint("a", i) {
			t.Fatalf("command %d has the ID %s, want the app's order", i, f.ID)
		}
	}
}

// A page that received a command before a restart may answer it afterwards, even if another page now acts as the
// glasses.
func TestResult_IsAcceptedFromAnyPageAfterRestart(t *testing.T) {
	m := newMemory()
	n := startNode(t, m, relay.Options{})
	first, _ := n.page(t, "")
	page, _ := n.page(t, "")
	app, w := n.app(t, "")
	app.send("display.show", "a1", hello)
	page.wantID("display.show", "a1", nil)
	app.wantID("ack", "a1", nil)
	for _, p := range []*peer{first, page, app} {
		_ = p.ws.CloseNow()
	}
	n.stop()

	rows, _ := m.SessionEvents(t.Context(), testID, 0, 100)
	m.mu.Lock() // the state after a crash: no command has a result
	m.rows = nil
	for _, e := range rows {
		if e.Kind != glasses.KindResult {
			m.rows = append(m.rows, e)
		}
	}
	m.mu.Unlock()
	n = startNode(t, m, relay.Options{})
	page, _ = n.page(t, "")
	other, _ := n.page(t, "")
	other.want("role", nil)
	app, _ = n.app(t, fmt.Sprintf(`,"since":%d`, w.LastSeq))
	page.send("result", "a1", `{"ok":true}`)
	var res glasses.Result
	if app.wantID("result", "a1", &res); !res.OK {
		t.Errorf("result %+v", res)
	}
}

// If pages attach and leave concurrently, the apps end up with the correct link state.
func TestLink_IsRightWhenPagesAttachConcurrently(t *testing.T) {
	for range 20 {
		n := startNode(t, newMemory(), relay.Options{})
		app, w := n.app(t, "")
		if w.Link != glasses.LinkDisconnected {
			t.Fatalf("the link is %s without a page, want disconnected", w.Link)
		}
		came := make(chan *websocket.Conn, 8)
		for range cap(came) {
			go func() {
				ws, _, err := websocket.Dial(t.Context(), n.url+"/s/"+testID+"/live",
					&websocket.DialOptions{HTTPHeader: http.Header{"Origin": {n.url}}})
				if err != nil {
					t.Error(err)
				}
				came <- ws
			}()
		}
		var l glasses.LinkState
		if app.want("link", &l); l.State != glasses.LinkConnected {
			t.Errorf("the link is %s with pages, want connected", l.State)
		}
		for range cap(came) {
			ws := <-came
			go func() { _ = ws.CloseNow() }()
		}
		if app.want("link", &l); l.State != glasses.LinkDisconnected {
			t.Errorf("the link is %s without pages, want disconnected", l.State)
		}
		_ = app.ws.CloseNow()
		n.stop()
	}
}
