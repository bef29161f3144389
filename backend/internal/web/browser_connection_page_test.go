package web

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/service-dev/service/test/chromium"
)

// frame returns a picture of the preview. The page cannot read its content, so tests compare pixels.
func (s *pageTest) frame() string {
	s.t.Helper()
	png, err := chromium.Run(s.ctx, chromedp.Screenshot(".preview-frames"))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(png)
}

// frameChanges waits until the preview is loaded and looks different, and returns its picture.
func (s *pageTest) frameChanges(before string) string {
	s.t.Helper()
	for end := time.Now().Add(chromium.StepLimit); time.Now().Before(end); {
		s.see(`document.readyState === "complete"`) // includes the frame
		if now := s.frame(); now != before && now == s.frame() {
			return now
		}
	}
	s.t.Fatal("the preview does not change, or the frame is empty")
	return ""
}

func walkToPage(t *testing.T) (*pageTest, *dashboardWorld) {
	t.Helper()
	h := newDashboardWorld(t)
	site := dashboardSite(t, h)
	return walkIn(t, site), h
}

// Without scripts, buttons show the entered values in a frame, and no value is saved.
func TestConnectionPage_PreviewWithoutScripts(t *testing.T) {
	s, h := walkToPage(t)
	s.withoutScripts()
	s.do(chromedp.Navigate(s.site.URL + helloPath + "/connection-page"))
	s.see(`document.querySelector("iframe").sandbox.length === 0`)
	saved := s.frame()
	s.do(chromium.Type("#title", " for cooks"), chromedp.Click(`[data-preview][formaction$="=disconnected"]`))
	entered := s.frameChanges(saved)
	s.do(chromedp.Click(`[data-preview][formaction$="=connected"]`))
	s.frameChanges(entered)
	if got := eval[string](s, `document.querySelector("#title").value`); !strings.Contains(got, " for cooks") {
		t.Errorf("the title is %q, want what was entered", got)
	}
	if h.page().Version != 2 {
		t.Error("the preview saved the page")
	}
	if eval[bool](s, `document.querySelector("#accent-picker").checkVisibility()`) {
		t.Error("the colour picker, which needs scripts, is shown without them")
	}
	s.do(chromedp.Submit("#title"))
	s.see(`document.body.innerText.includes("Saved.")`)
	for end := time.Now().Add(chromium.StepLimit); s.frame() != entered; {
		if time.Now().After(end) {
			t.Fatal("the saved page does not look as its preview did")
		}
	}
}

// With scripts, the preview follows the input. The focus stays in the field, and Back leaves the page.
func TestConnectionPage_PreviewFollows(t *testing.T) {
	s, h := walkToPage(t)
	s.do(chromedp.Navigate(s.site.URL + helloPath + "/connection-page"))
	s.see(`document.querySelector("[data-preview]").ariaPressed === "true"`)
	saved, entries := s.frame(), eval[int](s, `history.length`)
	s.do(chromium.Type("#title", "!"))
	typed := s.frameChanges(saved)
	s.see(`document.querySelectorAll("iframe").length === 1`)
	s.do(chromedp.Click(`[data-preview][formaction$="=connected"]`))
	connected := s.frameChanges(typed)
	s.see(`document.querySelectorAll("iframe").length === 1`)
	s.do(chromedp.Evaluate[chromedp.Void](`document.querySelector("#accent-picker").value = "#aa2200";
		document.querySelector("#accent-picker").dispatchEvent(new Event("input", {bubbles: true}))`))
	if got := eval[string](s, `document.querySelector("#accent").value`); got != "#aa2200" {
		t.Errorf("the text of the colour is %q, want the picked one", got)
	}
	s.frameChanges(connected)
	s.do(chromedp.Evaluate[chromedp.Void](`document.querySelector("#accent").select()`),
		chromium.Type("#accent", "#00AA22"))
	s.see(`document.querySelector("#accent-picker").value === "#00aa22"`)
	if got := eval[string](s, `document.activeElement.id`); got != "accent" {
		t.Errorf("the focus is on %q, want it to stay in the field", got)
	}
	if got := eval[int](s, `history.length`); got != entries {
		t.Errorf("previews added %d entries to the history, want none", got-entries)
	}
	if h.page().Version != 2 {
		t.Error("the preview saved the page")
	}
}

// A row is added with and without scripts, keeps the entered values, and gets the focus.
func TestConnectionPage_AddsRows(t *testing.T) {
	for name, scripts := range map[string]bool{"with scripts": true, "without scripts": false} {
		t.Run(name, func(t *testing.T) {
			s, h := walkToPage(t)
			if !scripts {
				s.withoutScripts()
			}
			s.do(chromedp.Navigate(s.site.URL + helloPath + "/connection-page"))
			if scripts {
				s.see(`document.querySelector("[data-preview]").ariaPressed === "true"`)
			}
			rows := eval[int](s, `document.querySelectorAll("[data-rows=phrase] [data-row]").length`)
			s.do(chromium.Type("#title", " for cooks"), chromium.Type("#phrase-2", "go back"),
				chromedp.Click(`[value="add-phrase"]`))
			s.see(`document.activeElement.id === "phrase-3"`)
			if got := eval[int](s, `document.querySelectorAll("[data-rows=phrase] [data-row]").length`); got != rows+1 {
				t.Errorf("%d rows, want %d", got, rows+1)
			}
			s.do(chromium.Type("#phrase-3", "stop"), chromedp.Click(`[value="add-toggle"]`))
			s.see(`document.activeElement.id === "toggle-id-3"`)
			s.noObstacles("connection-page-rows-" + strings.ReplaceAll(name, " ", "-"))
			s.do(chromium.Type("#toggle-id-3", "calm"), chromium.Type("#toggle-label-3", "Calmer\r")) // Enter saves
			s.see(`document.body.innerText.includes("Saved.")`)
			if p := h.page(); len(p.Phrases) != 3 || p.Phrases[2].Phrase != "stop" || !strings.Contains(p.Title, "for cooks") ||
				p.Toggles[len(p.Toggles)-1].ID != "calm" {
				t.Errorf("saved the page %+v, want the added rows", p)
			}
		})
	}
}

// Leaving the page asks first while there is unsaved input.
func TestConnectionPage_AsksBeforeItForgets(t *testing.T) {
	s, _ := walkToPage(t)
	s.do(chromedp.Navigate(s.site.URL + helloPath + "/connection-page"))
	s.see(`document.querySelector("[data-preview]").ariaPressed === "true"`)
	const asks = `!dispatchEvent(new Event("beforeunload", {cancelable: true}))`
	if eval[bool](s, asks) {
		t.Error("the page asks although nothing was entered")
	}
	saved := s.frame()
	s.do(chromium.Type("#title", "!"))
	s.frameChanges(saved)
	if !eval[bool](s, asks) {
		t.Error("the page does not ask about what was entered, after its preview")
	}
	s.do(chromium.Type("#title", "\r")) // Enter saves
	s.see(`document.body.innerText.includes("Saved.")`)
}

// Every problem is shown beside its field and in the summary, which has the focus and links to the fields.
func TestConnectionPage_ShowsEveryProblem(t *testing.T) {
	for _, scheme := range []string{"light", "dark"} {
		t.Run(scheme, func(t *testing.T) {
			s, _ := walkToPage(t)
			s.scheme(scheme)
			s.withoutScripts()
			s.do(chromedp.Navigate(s.site.URL + helloPath + "/connection-page"))
			s.do(chromium.Type("#toggle-id-2", "not so"), chromium.Type("#toggle-label-2", "Odd"),
				chromium.Type("#supportUrl", "nowhere"),
				chromium.Type("#privacyUrl", "http://example.org\r"))
			s.see(`document.activeElement.id === "summary"`)
			if got := eval[string](s, `document.activeElement.innerText`); !strings.Contains(got, "Correct 3 fields") {
				t.Errorf("the summary is %q, want all 3 fields", got)
			}
			for _, id := range []string{"toggle-id-2", "supportUrl", "privacyUrl"} {
				if !eval[bool](s, `document.getElementById("`+id+`").getAttribute("aria-invalid") === "true" &&
					document.getElementById("`+id+`").getAttribute("aria-describedby").includes("`+id+`-error") &&
					document.getElementById("`+id+`-error").checkVisibility()`) {
					t.Errorf("the problem of %s is not beside it", id)
				}
			}
			s.noObstacles(scheme + "-connection-page-errors")
			s.do(chromedp.Click(`#summary a[href="#privacyUrl"]`))
			s.see(`location.hash === "#privacyUrl" && document.activeElement.id === "privacyUrl"`)
		})
	}
}
