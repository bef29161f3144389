//go:build unix

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/service-dev/service/glasses"
)

// panelOf is JavaScript that returns the panel's pixels.
const panelOf = `(() => { const c = document.querySelector("#canvas"); const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
	let t = ""; for (let i = 0; i < d.length; i += 8192) t += String.fromCharCode(...d.subarray(i, i + 8192)); return btoa(t); })()`

// record performs a step that adds rows to the log, and returns the number of the last row and the panel after the
// step.
func (s *simulated) record(rows int, step func()) (seq int, panel string) {
	s.t.Helper()
	const last = `Number(document.querySelector("#log > li:last-child")?.dataset.seq ?? 0)`
	seq = evaluate[int](s.t, s.browser, last) + rows
	step()
	run(s.t, s.browser, "see the rows", until(fmt.Sprintf("%s === %d", last, seq)),
		chromedp.Evaluate[chromedp.Void](`window.isDrawn = false; requestAnimationFrame(() => requestAnimationFrame(() => { window.isDrawn = true; }))`),
		until("window.isDrawn"))
	return seq, evaluate[string](s.t, s.browser, panelOf)
}

func (s *simulated) show(tree string) {
	s.t.Helper()
	s.must(s.result(s.send(glasses.TypeDisplayShow, json.RawMessage(tree))))
}

func (s *simulated) move() {
	s.t.Helper()
	run(s.t, s.browser, "move the focus", chromedp.Focus("#panel"), chromedp.KeyEvent(kb.ArrowDown))
	s.next(glasses.TypeInput, "")
}

// seePast selects rows and compares the panel with the panel at the time of each row.
func (s *simulated) seePast(panels map[int]string) {
	s.t.Helper()
	for seq, want := range panels {
		run(s.t, s.browser, "choose a row", until(fmt.Sprintf(`document.querySelector('#log > li[data-seq="%d"]')`, seq)),
			chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`document.querySelector('#log > li[data-seq="%d"] > button').click()`, seq)),
			until(fmt.Sprintf(`document.querySelector("#travel-said").textContent.includes("row %d of")`, seq)),
			until(fmt.Sprintf("%s === %q", panelOf, want)))
	}
}

// On a real backend, selecting a row shows the panel at the time of the row, even after a reload, and the session can
// be shared without its secrets. axe-core finds no violations on the page while it shows a past row, or in the shared
// file.
func TestSimulatorPage_TimeTravelAndShare(t *testing.T) {
	t.Parallel()
	s := newSimulated(t, "rayban_display")
	axe := axeSource(t)
	run(t, s.browser, "see the app", until(`document.querySelector("#log > li:last-child .type")?.textContent === "app.attached: "`))
	panels := map[int]string{}
	for _, step := range []struct {
		rows int
		act  func()
	}{
		{2, func() { s.show(trails) }},
		{1, s.move},
		{2, func() { s.must(s.result(s.send(glasses.TypeCameraPhoto, glasses.Photo{Width: 320}))) }},
		{2, func() { s.must(s.result(s.send(glasses.TypeDisplayClear, struct{}{}))) }},
		{2, func() { s.show(strings.ReplaceAll(trails, "Trails near you", "Where to?")) }},
		{1, func() { s.send("com.example.note", map[string]string{"secret": s.secret}) }},
		{1, s.move},
	} {
		seq, panel := s.record(step.rows, step.act)
		panels[seq] = panel
	}
	s.seePast(panels)
	photo := evaluate[int](t, s.browser, `[...document.querySelectorAll("#log > li:has(.thumb)")].map((e) => Number(e.dataset.seq))[0] ?? 0`)
	s.seePast(map[int]string{photo: panels[photo]})
	checkLooks(t, s.browser, axe, "past")
	s.checkShared(axe, panels)

	emulate(t, s.browser, "light", 1280, 800) // the log is not behind a tab
	run(t, s.browser, "reload", chromedp.Navigate(s.url),
		until(`document.querySelector("#simulator")?.dataset.live === "yes" && document.querySelector("#display").innerText.includes("Where to?")`))
	s.seePast(panels)
	if text := evaluate[string](t, s.browser, `document.querySelector("#travel-said").textContent`); !strings.Contains(text, "Rebuilt from the log") {
		t.Errorf("after the reload the page says %q, want it to say that the moment is rebuilt", text)
	}
}

// checkShared opens the shared file from disk.
func (s *simulated) checkShared(axe string, panels map[int]string) {
	s.t.Helper()
	run(s.t, s.browser, "share", chromedp.Evaluate[chromedp.Void](`{ window.shared = ""; const make = URL.createObjectURL.bind(URL);
		URL.createObjectURL = (file) => { if (file.type === "text/html") file.text().then((text) => { window.shared = text; }); return make(file); };
		HTMLAnchorElement.prototype.click = function () {}; document.querySelector("#tab-session").click(); }`),
		chromedp.Click("#share-save"), until("window.shared"))
	page := evaluate[string](s.t, s.browser, "window.shared")
	for name, secret := range map[string]string{"the session secret": s.secret, "the token": s.token} {
		if len(secret) < 16 || strings.Contains(page, secret) {
			s.t.Errorf("the shared file contains %s (%d characters)", name, len(secret))
		}
	}
	path := filepath.Join(s.t.TempDir(), "shared.html")
	if err := os.WriteFile(path, []byte(page), 0o600); err != nil {
		s.t.Fatal(err)
	}
	run(s.t, s.browser, "open the file", chromedp.Navigate("file://"+path), until(`document.readyState === "complete"`))
	const sharedPanel = `(() => { const i = document.querySelector("#panel"), c = document.createElement("canvas"); c.width = i.naturalWidth; c.height = i.naturalHeight;
		c.getContext("2d").drawImage(i, 0, 0); const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
		let t = ""; for (let n = 0; n < d.length; n += 8192) t += String.fromCharCode(...d.subarray(n, n + 8192)); return btoa(t); })()`
	for seq, want := range panels {
		run(s.t, s.browser, "choose a row", chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`document.querySelector("#row-%d button").click()`, seq)),
			until(`document.querySelector("#panel").complete`), until(fmt.Sprintf("%s === %q", sharedPanel, want)))
	}
	s.checkSharedLooks(s.browser, axe)
}

func (s *simulated) checkSharedLooks(browser context.Context, axe string) {
	s.t.Helper()
	for _, look := range []struct {
		scheme        string
		width, height int64
	}{{"light", 1280, 800}, {"dark", 1280, 800}, {"light", 390, 844}, {"light", 640, 400}} {
		emulate(s.t, browser, look.scheme, look.width, look.height)
		for _, v := range axeViolations(s.t, browser, axe) {
			s.t.Errorf("axe violation on the shared file, %v: %s", look, v)
		}
		if evaluate[bool](s.t, browser, `document.documentElement.scrollWidth > innerWidth + 1`) {
			s.t.Errorf("the shared file is wider than the screen, %v", look)
		}
		picture(s.t, browser, fmt.Sprint("shared-", look.scheme, "-", look.width))
	}
}
