package web

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/render"
)

// panelModels returns the models with a display.
func panelModels() (list []glasses.DeviceModel) {
	for _, m := range glasses.Models() {
		if m.Panel != nil {
			list = append(list, m)
		}
	}
	return list
}

// pngOf returns a canvas on the page as a PNG.
func (s *pageTest) pngOf(selector string) []byte {
	s.t.Helper()
	url := eval[string](s, fmt.Sprintf(`document.querySelector(%q).toDataURL("image/png")`, selector))
	data, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(url, "data:image/png;base64,"))
	if err != nil {
		s.t.Fatal(err)
	}
	return data
}

func TestSimulatorModels_EqualTheGoldens(t *testing.T) {
	s := newPageTest(t, "even_g1")
	s.do(chromedp.Click("#tab-models"))
	s.see(`document.querySelector("#models-empty").checkVisibility()`)
	s.picture("models-empty")
	s.result(s.command(glasses.TypeDisplayShow, json.RawMessage(callScreen)))
	s.see(fmt.Sprintf(`document.querySelectorAll(".model-fit .badge:not([hidden])").length === %d`, len(panelModels())))
	for _, m := range panelModels() {
		card := fmt.Sprintf(`[data-model=%q]`, m.ID)
		golden, err := os.ReadFile("../../../glasses/render/testdata/" + m.ID + "/button.png")
		if err != nil {
			t.Fatal(err)
		}
		wantSamePicture(t, s.pngOf(card+" canvas"), golden)
		text := s.text(card)
		for _, want := range []string{m.Name, fmt.Sprintf("%d × %d", m.Panel.Width, m.Panel.Height)} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: the card says %q, want %q in it", m.ID, text, want)
			}
		}
		// Without an input that moves the focus, the wearer reaches only the first button.
		if fits := strings.Contains(text, "Fits"); fits != (m.MoveKind() != "") ||
			!fits && !strings.Contains(text, "Out of reach Decline") {
			t.Errorf("%s: the card says %q", m.ID, text)
		}
		if isGreen := strings.Contains(text, "1 colour shown in green"); isGreen != (m.Panel.Colour == glasses.ColourGreen) {
			t.Errorf("%s: the card says %q", m.ID, text)
		}
	}
	s.picture("models")
	s.do(chromedp.EmulateViewport(390, 844))
	s.see(`new Set([...document.querySelectorAll(".model")].map((e) => e.getBoundingClientRect().left)).size === 1`)
}

func TestSimulatorModels_SayWhatDoesNotFit(t *testing.T) {
	s := newPageTest(t, "rayban_display")
	s.do(chromedp.Click("#tab-models"))
	display := `{"tree":{"type":"column","children":[{"type":"text","style":"title","text":"Breakfast"},
		{"type":"button","id":"b1","text":"Porridge"},{"type":"button","id":"b2","text":"Pancakes"},{"type":"button","id":"b3","text":"Eggs"},
		{"type":"button","id":"b4","text":"Fruit"},{"type":"button","id":"b5","text":"Nothing at all"},{"type":"text","text":"Served until 10"}]}}`
	r := s.result(s.command(glasses.TypeDisplayShow, json.RawMessage(display)))
	if len(r.Findings) > 0 {
		t.Fatalf("got %+v, want a tree that fits the session's model", r.Findings)
	}
	s.see(`document.querySelector("[data-model=rayban_display]").innerText.includes("Fits")`)
	tree := treeOf(t, display)
	for _, m := range panelModels() {
		findings := render.Fit(m, render.Clamp(m, glasses.View{Tree: tree}))
		verdict := fmt.Sprintf("%d problems", len(findings))
		switch len(findings) {
		case 0:
			verdict = "Fits"
		case 1:
			verdict = "1 problem"
		}
		s.see(fmt.Sprintf(`document.querySelector("[data-model=%s]").innerText.includes(%q)`, m.ID, verdict))
	}
	if text := s.text("[data-model=even_g1]"); !strings.Contains(text, "Cut off Fruit") ||
		!strings.Contains(text, "more") {
		t.Errorf("even_g1: the card says %q, want the cut button and a count of the rest", text)
	}
	s.picture("models-findings")

	paged := `{"tree":{"type":"column","overflow":"paginate","children":[{"type":"text","text":"` +
		strings.Repeat("One more line of text. ", 30) + `"},{"type":"text","text":"ሀ"}]}}`
	s.result(s.command(glasses.TypeDisplayShow, json.RawMessage(paged)))
	for _, want := range []string{fmt.Sprintf("%d pages", render.Pages(mustModel(t, "even_g1"),
		glasses.View{Tree: treeOf(t, paged)})), "No font has ሀ U+1200"} {
		s.see(fmt.Sprintf(`document.querySelector("[data-model=even_g1]").innerText.includes(%q)`, want))
	}
}

func mustModel(t *testing.T, id string) glasses.DeviceModel {
	t.Helper()
	m, ok := glasses.Model(id)
	if !ok {
		t.Fatalf("no model %s", id)
	}
	return m
}

func TestSimulatorModels_OneClickPutsOneOn(t *testing.T) {
	s := newPageTest(t, "rayban_display")
	s.result(s.command(glasses.TypeDisplayShow, json.RawMessage(callScreen)))
	s.do(chromedp.Click("#tab-models"))
	s.see(`document.querySelector("[data-model=rayban_display] button").ariaPressed === "true"`)
	s.do(chromedp.Focus(`[data-model=brilliant_halo] button`), chromedp.KeyEvent(kb.Enter))
	var change glasses.DeviceChange
	if err := json.Unmarshal(s.next(glasses.TypeDevice, "").Payload, &change); err != nil ||
		change.DeviceModel.ID != "brilliant_halo" {
		t.Errorf("the device frame has %+v, error %v; want the chosen model", change, err)
	}
	s.see(`document.querySelector("#device").value === "brilliant_halo" && document.querySelector("#model-name").textContent === "Brilliant Halo"`)
	s.see(`document.querySelector("[data-model=brilliant_halo] button").ariaPressed === "true" && document.querySelector("[data-model=rayban_display] button").ariaPressed === "false"`)
}

// Many display commands do not slow the page: it draws nothing for a hidden tab, and updates a visible one in rounds.
func TestSimulatorModels_AreDrawnOnlyWhenSeen(t *testing.T) {
	const shows = 40
	s := newPageTest(t, "rayban_display")
	s.see("window.glasses")
	s.do(chromedp.Evaluate[chromedp.Void](`{ const preview = glasses.preview; window.previews = 0;
		glasses.preview = (...a) => { window.previews++; return preview(...a); }; }`))
	show := func(n int) string {
		return fmt.Sprintf(`{"tree":{"type":"text","text":"Show number %d"}}`, n)
	}
	for n := range shows {
		s.result(s.command(glasses.TypeDisplayShow, json.RawMessage(show(n))))
	}
	if drawn := eval[int](s, "previews"); drawn != 0 {
		t.Errorf("%d panels were drawn for a hidden tab, want none", drawn)
	}
	s.do(chromedp.Click("#tab-models"))
	s.see("previews > 0")
	for n := range shows {
		s.result(s.command(glasses.TypeDisplayShow, json.RawMessage(show(n))))
	}
	if drawn := eval[int](s, "previews"); drawn > shows*len(panelModels())/2 {
		t.Errorf("%d panels were drawn for %d shows, want far fewer than one for each", drawn, shows)
	}
	m := mustModel(t, "even_g2")
	want := render.Draw(m, render.Clamp(m, glasses.View{Tree: treeOf(t, show(shows-1))}))
	if !s.becomes(want.Pix, func() []byte { return pixelsOf(t, s.pngOf("[data-model=even_g2] canvas")) }) {
		t.Error("the tab does not show the last of many shows")
	}
	s.do(chromedp.Click("#tab-use"))
	s.see(`!document.querySelector("#models").checkVisibility()`)
}
