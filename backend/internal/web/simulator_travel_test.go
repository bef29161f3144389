package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/service-dev/service/glasses"
)

// longList returns a tree whose list is longer than a panel.
func longList(overflow string) string {
	var entries []string
	for i := range 30 {
		entries = append(entries, fmt.Sprintf(`{"type":"button","id":"e%d","text":"Entry %d"}`, i, i))
	}
	return `{"tree":{"type":"list","overflow":"` + overflow + `","children":[` + strings.Join(entries, ",") + `]}}`
}

// settle waits until the page has drawn its current state, and returns the last row and the pixels.
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

// A click on a row shows exactly the panel at its moment, while the session continues.
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
		s.see(fmt.Sprintf(`document.querySelector("#travel-said").textContent.includes("row %d of %d")`, seq, rows))
		s.wantCanvas(fmt.Sprint("row ", seq), want)
	}
	for _, wrong := range eval[[]string](s, layoutOf+`([["#panel", "#inputs > *", "#past"], ["#travel", "#log"]])`) {
		t.Errorf("in the past, %s", wrong)
	}
	s.picture("travel-past")
	s.do(chromedp.Click("#past-live"))
	s.wantCanvas("live", last)
}

// wantCanvas waits until the canvas has these pixels.
func (s *pageTest) wantCanvas(what string, want []byte) {
	s.t.Helper()
	if !s.becomes(want, s.pixels) {
		s.t.Errorf("%s: the canvas differs from what it was at that moment", what)
	}
}

// reload opens the page again. It receives the rows from a seq on, and only the tree of the panel.
func (s *pageTest) reload(from int, display string) {
	s.t.Helper()
	s.mu.Lock()
	s.history = s.log[from-1:]
	s.welcome.LastSeq, s.welcome.Display = s.rows, json.RawMessage(display)
	s.mu.Unlock()
	s.do(chromedp.Reload())
	s.see(fmt.Sprintf(isConnected+` &&
		document.querySelector("#idle").textContent !== "Loading" &&
		document.querySelector('#log > li[data-seq="%d"]')`, s.countRows()))
}

// After a reload, the page rebuilds earlier moments from the rows. If rows are missing, it reports the uncertainty.
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
			s.see(fmt.Sprintf(`document.querySelector("#travel-said").textContent.includes("row %d of %d. Rebuilt from the log")`, seq, rows))
			s.wantCanvas(fmt.Sprint("row ", seq), want)
		}
	}
	s.do(chromedp.Click("#past-live"))

	s.reload(5, longList("paginate")) // the display.show of the list is row 4
	s.clickRow(5)
	s.see(`document.querySelector("#travel-said").textContent.includes("What the panel showed is not known")`)
	s.see(`document.querySelector("#idle").checkVisibility() && document.querySelector("#idle").textContent === "Not known"`)
	if pixels := s.pixels(); bytes.Contains(pixels, []byte{0xff, 0xff, 0xff, 0xff}) {
		t.Error("the page shows a picture for a moment that it does not know")
	}
	s.picture("travel-unknown")
	s.clickRow(rows)
	s.see(`document.querySelector("#travel-said").textContent.includes("Rebuilt from the log")`)
	s.wantCanvas("the last row", live[rows])
	// New rows are exact again.
	seq, pixels := s.act(func() {
		s.do(chromedp.Click("#past-live"))
		s.key(kb.ArrowDown)
	})
	s.clickRow(seq)
	s.see(fmt.Sprintf(`document.querySelector("#travel-said").textContent.endsWith("row %d of %d.")`, seq, seq))
	s.wantCanvas("the new row", pixels)
}

// In the past, no input on the page reaches the glasses; the session continues in the background.
func TestSimulatorTravel_SessionGoesOn(t *testing.T) {
	s := newPageTest(t, "rayban_display")
	_, first := s.act(func() { s.show(menu) })
	_, last := s.act(func() { s.show(callScreen) })
	s.clickRow(2)
	s.wantCanvas("row 2", first)
	s.see(`/^The past: \d\d:\d\d:\d\d\.\d{3}, row 2 of 4\.$/.test(document.querySelector("#travel-said").textContent) && document.querySelector("#travel-text").textContent === "Row 2 of 4"`)
	s.see(`document.querySelector("#past").checkVisibility() && /^\d\d:\d\d:\d\d\.\d{3}, row 2 of 4$/.test(document.querySelector("#past-text").textContent)`)
	// There is one button for "Live", and no text claims that the past is live.
	s.see(`[...document.querySelectorAll("button")].filter((e) => e.checkVisibility() && /live/i.test(e.textContent)).length === 1 && document.querySelector("#socket").textContent === "Connected"`)
	s.see(`[...document.querySelectorAll("#inputs button, #say input, #say button")].every((e) => e.disabled) && document.querySelector("#controls").disabled &&
		document.querySelector("#fault-fields").disabled && document.querySelector("#panel").ariaDisabled === "true"`)
	s.do(chromedp.Click("#panel"), chromedp.Focus("#panel"), chromedp.KeyEvent(kb.Enter))
	s.send(glasses.SimState, "ctl-1", json.RawMessage(`{"battery":{"level":7,"charging":false}}`))
	s.result("ctl-1")
	s.show(longList("scroll"))
	s.see(`document.querySelector("#travel-said").textContent.endsWith("row 2 of 7.") && document.querySelector("#battery").value === "100"`)
	s.wantCanvas("row 2, while the session goes on", first)
	for _, f := range s.types() {
		if strings.HasPrefix(f, glasses.TypeInput+" ") {
			t.Errorf("the page sent %s while it showed the past", f)
		}
	}
	s.clickRow(5) // the battery
	s.see(`document.querySelector("#battery").value === "7"`)
	s.wantCanvas("row 5", last)
	s.do(chromedp.Click("#past-live"))
	s.see(`document.querySelector("#past").hidden && document.activeElement.id === "panel" && !document.querySelector("#controls").disabled && document.querySelector("#battery").value === "7" && document.querySelector("#live").hidden`)
	s.wantPixels("rayban_display", glasses.View{Tree: treeOf(t, longList("scroll"))})
	s.do(chromedp.Click("#panel"))
	s.next(glasses.TypeInput, "")
}

// A user without a mouse moves through rows, scrubber and "Live".
func TestSimulatorTravel_ByKeyboard(t *testing.T) {
	s := newPageTest(t, "rayban_display")
	pictures := map[int][]byte{}
	for _, step := range []func(){func() { s.show(menu) }, func() { s.key(kb.ArrowDown) }, func() { s.show(callScreen) }} {
		seq, pixels := s.act(step)
		pictures[seq] = pixels
	}
	past := func(seq int) {
		t.Helper()
		s.see(fmt.Sprintf(`document.querySelector("#travel-said").textContent.includes("row %d of 5")`, seq))
		if want, ok := pictures[seq]; ok {
			s.wantCanvas(fmt.Sprint("row ", seq), want)
		}
	}
	s.do(chromedp.Focus("#export"), chromedp.KeyEvent(kb.Tab))
	s.see(`document.activeElement.id === "scrub" && document.activeElement.getAttribute("aria-valuetext") === "Live"`)
	s.do(chromedp.KeyEvent(kb.Home))
	past(1)
	s.do(chromedp.KeyEvent(kb.ArrowRight))
	past(2)
	s.see(`/^Row 2 of 5, \d/.test(document.activeElement.getAttribute("aria-valuetext"))`)
	s.do(chromedp.KeyEvent(kb.End))
	past(5)
	s.do(chromedp.KeyEvent(kb.Escape))
	s.see(`document.querySelector("#past").hidden && document.activeElement.id === "scrub"`)
	s.do(chromedp.KeyEvent(kb.Tab))
	s.see(`document.activeElement.matches("#log button")`)
	s.do(chromedp.KeyEvent(kb.End), chromedp.KeyEvent(kb.ArrowUp), chromedp.KeyEvent(kb.ArrowUp))
	s.see(`document.activeElement.closest("li").dataset.seq === "3"`)
	s.do(chromedp.KeyEvent(kb.Enter))
	past(3)
	s.see(`document.activeElement.closest("li").dataset.seq === "3" && document.activeElement.ariaCurrent === "true"`)
	s.do(chromedp.KeyEvent(kb.Tab))
	s.see(`document.activeElement.matches('#log > li[data-seq="3"] summary')`)
	s.do(chromedp.KeyEvent(kb.Enter))
	s.see(`document.querySelector('#log > li[data-seq="3"] pre')`)
	s.do(chromedp.KeyEvent(kb.Escape))
	s.see(`document.querySelector("#past").hidden && document.activeElement.closest("li")?.dataset.seq === "3"`)
	s.wantCanvas("live", pictures[5])
}

// With a filter, the scrubber moves through the matching rows.
func TestSimulatorTravel_ThroughAFilter(t *testing.T) {
	s := newPageTest(t, "rayban_display")
	s.show(menu)
	s.fillLog(20)
	s.show(callScreen)
	s.do(chromedp.Click(`.filter[data-chip="display"]`))
	s.see(`document.querySelector("#log-count").textContent === "4 of 24 events" && document.querySelector("#scrub").max === "3"`)
	s.do(chromedp.Focus("#scrub"), chromedp.KeyEvent(kb.ArrowLeft))
	s.see(`document.querySelector("#travel-said").textContent.includes("row 23 of 24")`)
	s.do(chromedp.KeyEvent(kb.ArrowLeft))
	s.see(`document.querySelector("#travel-said").textContent.includes("row 2 of 24")`)
}

// A command that reaches the glasses late changes the panel at its result, not at its request.
func TestSimulatorTravel_LateCommand(t *testing.T) {
	s := newPageTest(t, "rayban_display")
	_, before := s.act(func() { s.show(menu) }) // rows 1, 2
	s.send(glasses.SimFault, "ctl-1", glasses.Fault{Command: glasses.TypeDisplayShow, LatencyMs: 200, Times: 1})
	s.result("ctl-1")                                // row 3
	_, after := s.act(func() { s.show(callScreen) }) // rows 4, 5
	s.clickRow(4)
	s.see(`document.querySelector("#travel-said").textContent.includes("row 4 of 5")`)
	s.wantCanvas("the request", before)
	s.clickRow(5)
	s.wantCanvas("the result", after)
	s.see(`/200 ms late/.test(document.querySelector('#log > li[data-seq="5"] .said').textContent)`)
}

// Snapshots are bounded; beyond the limit the oldest are dropped, and rows continue to share the remaining ones.
func TestSimulatorTravel_SnapshotsAreBounded(t *testing.T) {
	s := newPageTest(t, "rayban_display")
	s.do(chromedp.Evaluate[chromedp.Void](`import("/assets/moments.js").then(({ Moments }) => {
		const log = { entries: [] }, device = { running: true, last: "" }, moments = new Moments(log, { device });
		for (let seq = 1; seq <= 400; seq++) {
			if (seq % 2) device.last = seq + "x".repeat(1_000_000);
			const entry = { seq, id: "", kind: "event", sender: "app", moment: "" };
			log.entries.push(entry);
			moments.add(entry, true);
		}
		const kept = log.entries.filter((e) => e.moment);
		window.bounds = { distinct: new Set(kept.map((e) => e.moment)).size, rows: kept.length, newest: log.entries.at(-1).moment === device.last, inOrder: kept[0].seq === 401 - kept.length };
	})`))
	s.see("window.bounds")
	if got := eval[string](s, "JSON.stringify(window.bounds)"); got != `{"distinct":39,"rows":78,"newest":true,"inOrder":true}` {
		t.Errorf("got %s, want the latest 39 snapshots of 1 MB, each shared by two rows", got)
	}
}
