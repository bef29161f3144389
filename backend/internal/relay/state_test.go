package relay_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/service-dev/service/backend/internal/relay"
	"github.com/service-dev/service/glasses"
)

// standing waits until the page receives the apps' current settings, and returns them.
func (p *peer) standing() (s glasses.Standing) {
	p.t.Helper()
	p.want(glasses.SimStanding, &s)
	return s
}

// do sends a command from an app, which the page accepts.
func (p *peer) do(page *peer, typ, id, payload string) {
	p.t.Helper()
	p.send(typ, id, payload)
	page.wantID(typ, id, nil)
	page.send("result", id, `{"ok":true}`)
	p.succeeded(id)
}

func (p *peer) succeeded(id string) {
	p.t.Helper()
	var res glasses.Result
	if p.wantID("result", id, &res); !res.OK {
		p.t.Fatalf("%s: %+v", id, res.Error)
	}
}

func TestWelcome_CarriesGlassesState(t *testing.T) {
	m := newMemory()
	n := startNode(t, m, relay.Options{})
	app, w := n.app(t, "")
	if w.Link != "disconnected" || w.Glasses.Link != "disconnected" || w.Glasses.Battery.Level != 100 ||
		w.Glasses.Clock != glasses.ClockReal {
		t.Errorf("without a page the welcome is %+v, want disconnected glasses", w)
	}
	page, first := n.page(t, "")
	if first.Glasses.Link != "connected" || !first.Glasses.Worn {
		t.Errorf("the first page received %+v, want connected glasses that are worn", first.Glasses)
	}
	for i, event := range [][2]string{
		{"battery", `{"level":15,"charging":true}`}, {"wear", `{"worn":false}`}, {"hinge", `{"state":"folded"}`},
		{"thermal", `{"state":"warm"}`}, {"link", `{"state":"lossy"}`}, {"route", `{"to":"phone"}`},
		{"call", `{"active":true}`}, {"permission", `{"part":"camera","state":"denied"}`},
		{"disabled", `{"parts":["speech"]}`}, {"hinge", `{"state":"torn off"}`},
	} {
		id := fmt.Sprint("p", i)
		page.send(event[0], id, event[1])
		page.wantID("ack", id, nil)
	}
	want := `{"battery":{"level":15,"charging":true},"worn":false,"hinge":"folded","thermal":"warm","link":"lossy",` +
		`"route":"phone","call":true,"permissions":{"camera":"denied","microphone":"granted","speech":"granted"},` +
		`"disabled":["speech"],"clock":"real"}`
	late, w := n.app(t, "")
	if got := encoded(t, w.Glasses); got != want || w.Link != "lossy" {
		t.Errorf("got link %s, glasses %s; want every reported state", w.Link, got)
	}
	for _, p := range []*peer{app, late, page} {
		_ = p.ws.CloseNow()
	}
	n.stop()
	m.trim(m.s.LastSeq + 1) // no row is left
	n = startNode(t, m, relay.Options{})
	_, second := n.page(t, "")
	_, w = n.app(t, "")
	if got := encoded(t, w.Glasses); got != want || encoded(t, second.Glasses) != want {
		t.Errorf("after the restart the app received %s, want the state before it", got)
	}
}

// While the link is lost, the panel keeps its picture. When the link returns, the panel is clear, even after a restart.
func TestDisplay_IsClearAfterALostLink(t *testing.T) {
	m := newMemory()
	n := startNode(t, m, relay.Options{})
	page, _ := n.page(t, "")
	app, _ := n.app(t, "")
	app.do(page, "display.show", "a-1", `{"tree":{"type":"text","text":"x"}}`)
	for i, test := range []struct {
		link    string
		isClear bool
	}{{"lossy", false}, {"connected", false}, {"lost", false}, {"connected", true}} {
		id := fmt.Sprint("g-", i)
		page.send("link", id, `{"state":"`+test.link+`"}`)
		page.wantID("ack", id, nil)
		for _, isRestart := range []bool{false, true} {
			if isRestart {
				_, _ = page.ws.CloseNow(), app.ws.CloseNow()
				n.stop()
				n = startNode(t, m, relay.Options{})
			}
			late, w := n.page(t, "")
			if isClear := len(w.Display) == 0 || string(w.Display) == "null"; isClear != test.isClear {
				t.Errorf("link %s, restart %v: the panel shows %s, want it clear only if the link returned",
					test.link, isRestart, w.Display)
			}
			page = late
		}
		app, _ = n.app(t, "")
	}
}

// A fault can close the connections of apps, but not of pages. An app that returns misses no event.
func TestFault_DropsApps(t *testing.T) {
	n := startNode(t, newMemory(), relay.Options{})
	page, _ := n.page(t, "")
	app, w := n.app(t, "")
	page.send("fault", "g-1", `{"dropApp":true}`)
	page.wantID("ack", "g-1", nil)
	app.wantClose(glasses.CloseRestart, glasses.DroppedByFault)
	page.send("battery", "g-2", `{"level":9,"charging":false}`)
	page.wantID("ack", "g-2", nil)
	back, _ := n.app(t, fmt.Sprintf(`,"since":%d`, w.LastSeq))
	back.wantID("battery", "g-2", nil)
	page.send("fault", "g-1", `{"dropApp":true}`) // repeating the fault disconnects no app
	page.wantID("ack", "g-1", nil)
	page.send("wear", "g-3", `{"worn":false}`)
	back.wantID("wear", "g-3", nil)
}

func TestStanding_IsRestoredOnPages(t *testing.T) {
	m := newMemory()
	n := startNode(t, m, relay.Options{})
	app, w := n.app(t, "")
	app.send("phrases.announce", "a1", `{"phrases":["next page"]}`)
	app.succeeded("a1")
	app.send("transcription.start", "a2", `{}`)
	var res glasses.Result
	if app.wantID("result", "a2", &res); res.Error == nil || res.Error.Code != glasses.CodeNotConnected {
		t.Errorf("without glasses: got %+v, want not_connected", res)
	}
	page, _ := n.page(t, "")
	if s := page.standing(); encoded(t, s) != `{"phrases":["next page"],"transcription":null}` {
		t.Errorf("a page opened later received %+v, want the phrases only", s)
	}
	app.send("transcription.start", "a3", `{"language":"en"}`) // the glasses refuse it, so it must not be saved
	page.wantID("transcription.start", "a3", nil)
	page.send("result", "a3", `{"error":{"code":"busy","message":"a phone call is active"}}`)
	app.wantID("result", "a3", nil)
	app.do(page, "transcription.start", "a4", `{"language":"de"}`)
	app.send("transcription.stop", "a5", `{}`) // a refused stop changes nothing
	page.wantID("transcription.stop", "a5", nil)
	page.send("result", "a5", `{"error":{"code":"platform_error","message":"no"}}`)
	app.wantID("result", "a5", nil)

	both := `{"phrases":["next page"],"transcription":{"language":"de"}}`
	other, _ := n.page(t, "") // another page takes over
	if s := other.standing(); encoded(t, s) != both {
		t.Errorf("the second page received %+v, want both settings", s)
	}
	_ = other.ws.CloseNow()
	if s := page.standing(); encoded(t, s) != both {
		t.Errorf("after the second page left, the first received %+v, want both settings", s)
	}

	_ = app.ws.CloseNow() // no app remains to receive transcripts
	if s := page.standing(); encoded(t, s) != `{"phrases":["next page"],"transcription":null}` {
		t.Errorf("without an app the page received %+v, want no transcription", s)
	}
	_ = page.ws.CloseNow()
	n.stop()
	m.trim(m.s.LastSeq + 1)
	n = startNode(t, m, relay.Options{})
	page, _ = n.page(t, "")
	if s := page.standing(); encoded(t, s) != `{"phrases":["next page"],"transcription":null}` {
		t.Errorf("a page opened again without an app received %+v, want no transcription", s)
	}
	app, _ = n.app(t, fmt.Sprintf(`,"since":%d`, w.LastSeq))
	if s := page.standing(); encoded(t, s) != both {
		t.Errorf("after the app returned, the page received %+v, want both settings", s)
	}

	_ = app.ws.CloseNow()
	page.standing()
	app, _ = n.app(t, "") // a new process did not start transcription
	again, _ := n.page(t, "")
	if s := again.standing(); encoded(t, s) != `{"phrases":["next page"],"transcription":null}` {
		t.Errorf("with a new app, the page received %+v, want no transcription", s)
	}
	app.do(again, "transcription.start", "b1", `{}`)
}

// TestStanding_ReportsEndByNewApp checks that an app learns, when it reconnects, that its transcription has ended.
func TestStanding_ReportsEndByNewApp(t *testing.T) {
	m := newMemory()
	n := startNode(t, m, relay.Options{})
	page, _ := n.page(t, "")
	app, _ := n.app(t, "")
	app.do(page, "transcription.start", "a1", `{}`)
	page.wantRow("result")
	n.stop()
	m.mu.Lock()
	cursor := m.s.LastSeq
	m.mu.Unlock()
	n = startNode(t, m, relay.Options{})
	n.app(t, "") // another app attaches before the first one returns
	back, _ := n.app(t, fmt.Sprintf(`,"since":%d`, cursor))
	var ended glasses.TranscriptionState
	if back.want(glasses.TypeTranscription, &ended); ended != (glasses.TranscriptionState{}) {
		t.Errorf("the app that returned received %+v, want no transcription", ended)
	}
}

// TestStanding_EndsWithoutPage checks that an app can end transcription while no page is open.
func TestStanding_EndsWithoutPage(t *testing.T) {
	n := startNode(t, newMemory(), relay.Options{})
	page, _ := n.page(t, "")
	app, _ := n.app(t, "")
	app.do(page, "transcription.start", "a1", `{}`)
	_ = page.ws.CloseNow()
	app.find(func(f glasses.Frame) bool {
		return f.Type == "link" && string(f.Payload) == `{"state":"disconnected"}`
	}, "the page's end", nil)
	app.send("transcription.stop", "a3", `{}`)
	app.succeeded("a3")
	page, _ = n.page(t, "")
	if s := page.standing(); s.Transcription != nil {
		t.Errorf("transcription is still on after its end: %+v", s)
	}
}

func TestControl_RefusesStanding(t *testing.T) {
	n := startNode(t, newMemory(), relay.Options{})
	page, _ := n.page(t, "")
	answer, err := n.Control(t.Context(), testID, glasses.SimStanding, []byte(`{"phrases":["x"]}`), nil)
	res, parseErr := glasses.ParseResult(answer)
	if err != nil || parseErr != nil || res.Error == nil || res.Error.Code != glasses.CodeUnsupported {
		t.Errorf("%s, %v", answer, err)
	}
	page.send(glasses.SimStanding, "p1", `{"phrases":["x"]}`)
	page.want("error", nil)
}

func encoded(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
