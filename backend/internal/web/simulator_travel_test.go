package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/service-dev/service/proto/glasses"
)

// pages is a tree whose list is longer than a panel.
func longList(overflow string) string {
	var entries []string
	for i := range 30 {
		entries = append(entries, fmt.Sprintf(`{"type":"button","id":"e%d","text":"Entry %d"}`, i, i))
	}
	return `{"tree":{"type":"list","overflow":"` + overflow + `","children":[` + strings.Join(entries, ",") + `]}}`
}

// settle waits until the page has drawn what it knows, and returns the last row and the pixels.
func (s *pageTest) settle(rows int) (int, []byte) {
	s.t.Helper()
	s.see(fmt.Sprintf(`document.querySelector('#log > li[data-seq="%d"]')`, rows))
	s.do(chromedp.Evaluate[chromedp.Void](`window.isDrawn = false; requestAnimationFrame(() => requestAnimationFrame(() => { window.isDrawn = true; }))`))
	s.see("window.isDrawn")
	return rows, s.pixels()
}

func (s *pageTest) countRows() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int(s.rows)
}

// act performs a step and returns the pixels after it.
func (s *pageTest) act(step func()) (seq int, pixels []byte) {
	s.t.Helper()
	step()
	return s.settle(s.countRows())
}

func (s *pageTest) show(tree string) {
	s.t.Helper()
	if r := s.result(s.command(glasses.TypeDisplayShow, json.RawMessage(tree))); !r.OK {
		s.t.Fatalf("display.show: got error %+v, want none", r.Error)
	}
}

func (s *pageTest) key(key string) {
	s.t.Helper()
	s.do(chromedp.Focus("#panel"), chromedp.KeyEvent(key))
	s.next(glasses.TypeInput, "")
}

func (s *pageTest) choose(id, value string) {
	s.t.Helper()
	s.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`{ const e = document.querySelector(%q); e.value = %q; e.dispatchEvent(new Event("change")); }`, id, value)))
}

func (s *pageTest) switchTo(model string) {
	s.t.Helper()
	s.choose("#device", model)
	s.next(glasses.TypeDevice, "")
}

func (s *pageTest) fold() {
	s.t.Helper()
	s.do(chromedp.Evaluate[chromedp.Void](`document.querySelector("#folded").click()`))
	s.next(glasses.TypeHinge, "")
}

func (s *pageTest) clickRow(seq int) {
	s.t.Helper()
	s.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`document.querySelector('#log > li[data-seq="%d"] > button').click()`, seq)))
}

// A click on a row shows exactly the panel of its moment, while the session goes on.
func TestSimulatorTravel_ShowsThePanelOfEachRow(t *testing.T) {
	s := newPageTest(t, "rayban_display")
	steps := []func(){
		func() { s.show(menu) },
		func() { s.key(kb.ArrowDown) },
		func() { s.key(kb.ArrowDown) },
		func() { s.show(longList("scroll")) },
		func() { s.key(kb.ArrowDown) }, func() { s.key(kb.ArrowUp) },
		func() { s.show(longList("paginate")) },
		func() { s.fold() },
		func() { s.fold() },
		func() { s.switchTo("even_g1") },
		func() { s.show(longList("paginate")) },
		func() {
			s.do(chromedp.Evaluate[chromedp.Void](`document.querySelector('#inputs [title="Swipe down"], #inputs [title="Move down"]')?.click()`))
		},
		func() { s.result(s.command(glasses.TypeDisplayClear, struct{}{})) },
		func() { s.switchTo("rayban_display") },
		func() { s.show(menu) },
		func() { s.choose("#link", "lost"); s.next(glasses.TypeLink, "") },
		func() { s.choose("#link", "connected"); s.next(glasses.TypeLink, "") },
		func() { s.show(callScreen) },
	}
	for range 8 { // scrolls
		steps = append(steps[:4:4], append([]func(){func() { s.key(kb.ArrowDown) }}, steps[4:]...)...)
	}
	live := map[int][]byte{}
	for _, step := range steps {
		seq, pixels := s.act(step)
		live[seq] = pixels
	}
	last := s.pixels()
	rows := s.countRows()
	if len(live) < 20 {
		t.Fatalf("got %d moments, want more", len(live))
	}
	s.picture("travel-live")
	for seq := rows; seq > 0; seq-- {
		want, ok := live[seq]
		if !ok {
			continue
		}
		s.clickRow(seq)
		s.see(fmt.Sprintf(`document.querySelector("#travel-text").textContent.includes("row %d of %d")`, seq, rows))
		s.wantCanvas(fmt.Sprint("row ", seq), want)
	}
	s.picture("travel-past")
	s.do(chromedp.Click("#live"))
	s.wantCanvas("live", last)
}

// wantCanvas waits until the canvas has these pixels.
func (s *pageTest) wantCanvas(what string, want []byte) {
	s.t.Helper()
	for range 50 { // the picture is drawn in the next animation frame
		if bytes.Equal(s.pixels(), want) {
			return
		}
	}
	s.t.Errorf("%s: the canvas differs from what it was at that moment", what)
}

// reload opens the page again. It gets the rows from a seq on, and of the panel only the tree.
func (s *pageTest) reload(from int, display string) {
	s.t.Helper()
	s.mu.Lock()
	s.history = s.log[from-1:]
	s.welcome.LastSeq, s.welcome.Display = s.rows, json.RawMessage(display)
	s.mu.Unlock()
	s.do(chromedp.Reload())
	s.see(fmt.Sprintf(`document.querySelector("#socket")?.dataset.state === "up" && document.querySelector("#idle").textContent !== "Loading" &&
		document.querySelector('#log > li[data-seq="%d"]')`, s.countRows()))
}

// After a reload the page rebuilds earlier moments from the rows. If rows are missing, it says what it does not know.
func TestSimulatorTravel_RebuildsWhatItDidNotSee(t *testing.T) {
	s := newPageTest(t, "rayban_display")
	live := map[int][]byte{}
	for _, step := range []func(){
		func() { s.show(menu) }, func() { s.key(kb.ArrowDown) },
		func() { s.show(longList("scroll")) }, func() { s.key(kb.ArrowDown) }, func() { s.key(kb.ArrowUp) }, func() { s.key(kb.ArrowUp) },
		func() { s.result(s.command(glasses.TypeDisplayClear, struct{}{})) },
		func() { s.fold() }, func() { s.fold() },
		func() { s.show(longList("paginate")) }, func() { s.key(kb.ArrowDown) },
	} {
		seq, pixels := s.act(step)
		live[seq] = pixels
	}
	rows := s.countRows()
	s.reload(1, longList("paginate"))
	for seq := 1; seq <= rows; seq++ {
		if want, ok := live[seq]; ok {
			s.clickRow(seq)
			s.see(fmt.Sprintf(`document.querySelector("#travel-text").textContent.includes("row %d of %d. Rebuilt from the log")`, seq, rows))
			s.wantCanvas(fmt.Sprint("row ", seq), want)
		}
	}
	s.do(chromedp.Click("#live"))

	s.reload(5, longList("paginate")) // the display.show of the list is row 4
	s.clickRow(5)
	s.see(`document.querySelector("#travel-text").textContent.includes("What the panel showed is not known")`)
	s.see(`document.querySelector("#idle").checkVisibility() && document.querySelector("#idle").textContent === "Not known"`)
	if pixels := s.pixels(); bytes.Contains(pixels, []byte{0xff, 0xff, 0xff, 0xff}) {
		t.Error("the page shows a picture for a moment that it does not know")
	}
	s.picture("travel-unknown")
	s.clickRow(rows)
	s.see(`document.querySelector("#travel-text").textContent.includes("Rebuilt from the log")`)
	s.wantCanvas("the last row", live[rows])
	// New rows are exact again.
	seq, pixels := s.act(func() {
		s.do(chromedp.Click("#live"))
		s.key(kb.ArrowDown)
	})
	s.clickRow(seq)
	s.see(fmt.Sprintf(`document.querySelector("#travel-text").textContent.endsWith("row %d of %d.")`, seq, seq))
	s.wantCanvas("the new row", pixels)
}
