package web

import (
	"encoding/json"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/service-dev/service/glasses"
)

// The page fetches a font when a text first needs it, before it handles the frame. It fetches no other fonts.
func TestSimulatorPage_FetchesTheFontsOfATextOnly(t *testing.T) {
	s := newPageTest(t, "rayban_display")
	s.showMenu()
	fetched := `performance.getEntriesByType("resource").map((e) => e.name).filter((n) => n.includes(".ttf"))` +
		`.map((n) => n.replace(/.*\/(.*)\.ttf\?v=.*/, "$1")).sort().join(" ")`
	if got := eval[string](s, fetched); got != "" {
		t.Errorf("a page with Latin text has fetched %s, want no font", got)
	}
	show := func(text string) glasses.Result {
		payload := `{"tree":{"type":"text","text":"` + text + `"}}`
		r := s.result(s.command(glasses.TypeDisplayShow, json.RawMessage(payload)))
		s.see(`document.querySelector("#display").innerText.includes("` + text + `")`)
		if r.OK && len(r.Findings) == 0 {
			s.wantPixels("rayban_display", glasses.View{Tree: treeOf(t, payload)})
		}
		return r
	}
	for _, text := range []string{"你好，世界", "مرحبا بالعالم"} {
		if r := show(text); !r.OK || len(r.Findings) > 0 {
			t.Errorf("text %s: got %+v, want it drawn without findings", text, r)
		}
	}
	if got := eval[string](s, fetched); got != "arabic-400 chinese-simplified-400" {
		t.Errorf("fetched the fonts %s, want one for each script", got)
	}
	s.picture("arabic")
	s.do(chromedp.Evaluate[chromedp.Void](`window.fetch = () => Promise.reject(new Error("offline"))`))
	if r := show("ไทย"); !r.OK || len(r.Findings) != 1 || r.Findings[0].Kind != glasses.FindingMissingGlyph {
		t.Errorf("offline: got %+v, want a missing glyph", r)
	}
	s.see(`document.querySelector("#notice").innerText.includes("thai-400")`)
}
