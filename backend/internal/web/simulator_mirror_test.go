package web

import (
	"encoding/json"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/service-dev/service/glasses"
)

func TestSimulatorPage_Mirror(t *testing.T) {
	s := newPageTest(t, "rayban_display")
	s.send(glasses.TypeRole, "", glasses.Role{Active: false})
	s.see(`!document.querySelector("#mirror").hidden && document.querySelector("#controls").disabled`)
	s.command(glasses.TypeDisplayShow, json.RawMessage(menu))
	s.see(`document.querySelector("#display").innerText.includes("Ridge walk")`)
	s.row(glasses.Event{Kind: glasses.KindEvent, Chip: glasses.ChipLifecycle, Type: glasses.TypeHinge, ID: "x",
		Sender:  glasses.SenderGlasses,
		Payload: json.RawMessage(`{"state":"folded"}`)})
	s.see(`document.querySelector("#folded").checked`)
	s.do(chromedp.Click("#panel"))
	s.picture("mirror")
	if heard := s.types(); len(heard) > 0 {
		t.Errorf("an observing page sent %v, want nothing", heard)
	}
	s.send(glasses.TypeRole, "", glasses.Role{Active: true})
	s.see(`document.querySelector("#mirror").hidden`)
	if r := s.result(s.command(glasses.TypeDisplayClear, struct{}{})); !r.OK {
		t.Errorf("clear: %+v", r.Error)
	}
}

// If a page only observed when its session ended, it offers no impossible action, and no longer names the page that
// acted as the glasses.
func TestSimulatorPage_MirrorWhenSessionEnds(t *testing.T) {
	s := newPageTest(t, "rayban_display")
	s.send(glasses.TypeRole, "", glasses.Role{Active: false})
	s.see(`!document.querySelector("#mirror").hidden`)
	s.mu.Lock()
	socket := s.page
	s.mu.Unlock()
	_ = socket.Close(4410, "the session is over")
	s.see(`document.querySelector("#socket").dataset.state === "over"`)
	s.see(`document.querySelector("#mirror").hidden`)
	s.see(`!document.querySelector("#peers").innerText.includes("another page")`)
}

// The panel of a page that only observes has its own focus. Its earlier moments show the page that acts as the glasses,
// rebuilt from the events.
func TestSimulatorPage_MirrorGoesBack(t *testing.T) {
	s := newPageTest(t, "rayban_display")
	s.send(glasses.TypeRole, "", glasses.Role{Active: false})
	s.see(`!document.querySelector("#mirror").hidden`)
	id := s.command(glasses.TypeDisplayShow, json.RawMessage(menu))
	for _, e := range []glasses.Event{
		{Kind: glasses.KindResult, Chip: glasses.ChipDisplay, Type: glasses.TypeResult, ID: id, Payload: json.RawMessage(`{"ok":true}`)},
		{Kind: glasses.KindEvent, Chip: glasses.ChipDisplay, Type: glasses.TypeInput, ID: "g-1", Payload: json.RawMessage(`{"kind":"navigate","direction":"down","target":"lake"}`)},
		{Kind: glasses.KindEvent, Chip: glasses.ChipDisplay, Type: glasses.TypeInput, ID: "g-2", Payload: json.RawMessage(`{"kind":"navigate","direction":"down","target":"mill"}`)},
	} {
		e.Sender = glasses.SenderGlasses
		s.row(e)
	}
	for seq, focus := range map[int]int{2: 0, 3: 1, 4: 2} {
		s.see(`document.querySelector('#log > li[data-seq="4"]')`)
		s.clickRow(seq)
		s.see(`document.querySelector("#travel-said").textContent.includes("Rebuilt from the log")`)
		s.wantPixels("rayban_display", glasses.View{Tree: treeOf(t, menu), Focus: focus})
	}
}
