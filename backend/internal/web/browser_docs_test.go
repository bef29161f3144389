package web

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestBrowser_Docs finds a section with the keyboard alone, copies its code, and turns the page.
func TestBrowser_Docs(t *testing.T) {
	s := &pageTest{t: t, site: newSite(t, newPeople(t)), ctx: newBrowser(t)}
	s.do(chromedp.Navigate(s.site.URL + "/docs"))
	s.see(`document.querySelector(".docs-search input")`)
	s.do(chromedp.KeyEvent("/"), chromedp.KeyEvent("scroll a list"), chromedp.KeyEvent(kb.Enter))
	s.see(`location.pathname === "/docs/search" && document.querySelector(".docs-results mark")`)
	s.do(chromedp.Click(".docs-results a"))
	s.see(`location.pathname === "/docs/display" && location.hash === "#lists"`)
	s.see(`document.querySelector(".snippet .copy")`)
	if pictures := eval[int](s, `document.querySelectorAll(".shown img").length`); pictures < 3 {
		t.Errorf("the page shows %d panels beside their trees, want at least 3", pictures)
	}
	eval[bool](s, `(navigator.clipboard.writeText = async (text) => { window.copied = text; }) !== null`)
	s.do(chromedp.Click(".snippet .copy"))
	s.see(`document.querySelector(".snippet .copy").textContent === "Copied"`)
	if text := eval[string](s, "window.copied"); !strings.HasPrefix(text, `{"v":1,"type":"display.show"`) {
		t.Errorf("copied %q, want the code of the block alone", text)
	}
	s.do(chromedp.Click(`.docs-turn a[rel="next"]`))
	s.see(`location.pathname === "/docs/panels"`)
}
