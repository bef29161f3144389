package web

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/render"
	"github.com/service-dev/service/glasses/scenario"
)

// A page that lacks some rows reports it wherever it shows or saves rows.
func TestSimulatorLog_SaysWhichRowsAreMissing(t *testing.T) {
	s := newPageTest(t, "rayban_display")
	s.show(menu)
	s.fillLog(20)
	s.show(callScreen)
	s.see(`document.querySelector("#log-count").textContent === "24 events" && document.querySelector("#travel-text").textContent === ""`)
	s.reload(10, callScreen)
	s.see(`document.querySelector("#log-count").textContent === "The latest 15 of 24 events" && document.querySelector("#export").title.includes("the latest 15 of 24 rows")`)
	s.see(`document.querySelector("#travel-text").textContent === "Here: the latest 15 of 24 rows" && document.querySelector("#scrub").getAttribute("aria-valuetext") === "Live, the latest 15 of 24 rows"`)
	s.picture("log-missing")
	s.do(chromedp.Click(`.filter[data-chip="display"]`))
	s.see(`document.querySelector("#log-count").textContent === "2 of the latest 15 of 24 events"`)
	s.do(chromedp.Focus("#scrub"), chromedp.KeyEvent(kb.Home))
	s.see(`document.querySelector("#travel-text").textContent === "Row 23 of 24, the latest 15 are here"`)
	if page := s.share(); !bytes.Contains(page, []byte("The 9 oldest of 24 rows are left out.")) {
		t.Error("the shared file does not say that rows are missing")
	}
}

// On a phone, the bar on the panel is far from the rows, so "Back to live" is also next to the slider.
func TestSimulatorTravel_BackToLiveOnAPhone(t *testing.T) {
	s := newPageTest(t, "rayban_display")
	s.show(menu)
	s.do(chromedp.EmulateViewport(390, 844), chromedp.Click("#tab-log"))
	s.see(`document.querySelector('#log > li[data-seq="1"]') && !document.querySelector("#live").checkVisibility()`)
	s.clickRow(1)
	s.see(`document.querySelector("#live").checkVisibility()`)
	s.picture("travel-strip")
	s.do(chromedp.EmulateViewport(390, 844), chromedp.Click("#live"))
	s.see(`document.querySelector("#past").hidden && !document.querySelector("#live").checkVisibility() && document.activeElement.id === "panel"`)
}

// In the past, the tools and the tab "Models" act on the shown moment; unavailable actions explain why.
func TestSimulatorTravel_ToolsActOnTheMoment(t *testing.T) {
	s := newPageTest(t, "rayban_display")
	s.do(chromedp.Evaluate[chromedp.Void](`window.copied = ""; navigator.clipboard.writeText = async (text) => { window.copied = text; }`))
	s.act(func() { s.show(menu) })
	s.act(func() { s.key(kb.ArrowDown) })
	s.act(func() { s.result(s.command(glasses.TypeDisplayClear, struct{}{})) })
	s.act(func() { s.show(callScreen) })
	s.do(chromedp.Click("#tab-models"))
	m := mustModel(t, "even_g1")
	isShown := func(what, show string) {
		t.Helper()
		want := render.Draw(m, render.Clamp(m, glasses.View{Tree: treeOf(t, show)}))
		if !s.becomes(want.Pix, func() []byte { return pixelsOf(t, s.pngOf("[data-model=even_g1] canvas")) }) {
			t.Errorf("%s: the tab Models shows another panel", what)
		}
	}
	s.clickRow(2)
	isShown("in the past", menu)
	s.clickRow(3)
	s.do(chromedp.Click("#copy-step"))
	s.see("window.copied")
	steps, err := scenario.ParseSteps([]byte("[" + eval[string](s, "window.copied") + "]"))
	if err != nil || len(steps) != 1 || steps[0].ExpectDisplay == nil || steps[0].ExpectDisplay.Focus == nil ||
		*steps[0].ExpectDisplay.Focus != "lake" {
		t.Errorf("the step is %s, error %v; want the focus of the moment", eval[string](s, "window.copied"), err)
	}
	s.see(`document.querySelector("#clip").ariaDisabled === "true" && document.querySelector("#clip").title.includes("Go back to live first")`)
	s.do(chromedp.Click("#clip"))
	s.see(`document.querySelector("#notice").innerText.includes("Go back to live first")`)
	s.picture("travel-tools")
	s.clickRow(5)
	s.see(`document.querySelector("#models-empty").innerText === "Nothing was on the panel at this moment."`)
	s.do(chromedp.Click("#past-live"))
	isShown("live", callScreen)
	s.see(`document.querySelector("#clip").ariaDisabled === null`)

	s.reload(3, callScreen)
	s.clickRow(3)
	s.see(`document.querySelector("#display").textContent === "What the panel showed is not known." && document.querySelector("#idle").textContent === "Not known"`)
	for _, id := range []string{"copy-step", "screenshot", "clip"} {
		s.see(fmt.Sprintf(`document.querySelector("#%s").ariaDisabled === "true"`, id))
	}
	s.see(`document.querySelector("#copy-step").title === "What the panel showed at this moment is not known." && document.querySelector("#models-empty").innerText === document.querySelector("#copy-step").title`)
}

// A button that is unavailable in the past keeps its colours under the mouse, so that its label stays legible.
func TestSimulatorTravel_HoveringADisabledButtonKeepsItsLabel(t *testing.T) {
	s := newPageTest(t, "rayban_display")
	s.act(func() { s.show(menu) })
	s.clickRow(1)
	s.see(`(() => { window.off = [...document.querySelectorAll("button:disabled")].filter(b => b.checkVisibility());
		return off.length > 0; })()`)
	for i := range eval[int](s, "off.length") {
		colours := fmt.Sprintf(`(() => { const c = getComputedStyle(off[%d]);
			return c.color + " on " + c.backgroundColor; })()`, i)
		before := eval[string](s, colours)
		at := eval[[]float64](s, fmt.Sprintf(`(() => { off[%d].scrollIntoView({ block: "center" });
			const r = off[%[1]d].getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()`, i))
		s.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, at[0], at[1]))
		s.see(fmt.Sprintf(`off[%d].matches(":hover")`, i))
		if after := eval[string](s, colours); after != before {
			label := eval[string](s, fmt.Sprintf("off[%d].innerText", i))
			t.Errorf("%q is %s under the mouse, and %s without it", label, after, before)
		}
	}
}

// The page does not look connected to glasses before its program acts as the glasses.
func TestSimulatorPage_SaysThatItsProgramIsLoading(t *testing.T) {
	s := newPageTest(t, "rayban_display")
	s.see(`document.querySelector("#socket").textContent === "Connected" && document.querySelector("#peers").innerText.includes("Glasses: this page")`)
	s.beforeScripts(`{ const load = WebAssembly.instantiateStreaming;
		WebAssembly.instantiateStreaming = (...a) => new Promise((done, fail) => {
			window.go = () => load(...a).then(done, fail);
			window.stop = fail;
		}); }`)
	s.do(chromedp.Reload())
	s.see(`window.go && document.querySelector("#socket").dataset.state === "up" && document.querySelector("#socket").textContent === "Loading" && document.querySelector("#peers").innerText.includes("loading")`)
	s.picture("program-loading")
	s.do(chromedp.Evaluate[chromedp.Void](`window.go()`))
	s.see(`document.querySelector("#socket").textContent === "Connected" && !document.querySelector("#peers").innerText.includes("loading")`)
	s.do(chromedp.Reload())
	s.see(`window.stop && document.querySelector("#socket").textContent === "Loading"`)
	s.do(chromedp.Evaluate[chromedp.Void](`window.stop(new Error("blocked"))`))
	s.see(`document.querySelector("#socket").textContent === "Not running" && document.querySelector("#peers").innerText.includes("not running") &&
		document.querySelector("#idle").textContent === "Not running" && document.querySelector("#notice").innerText.includes("blocked")`)
	s.picture("program-broken")
}

func TestSimulatorPage_SaysWhenTheSessionEnds(t *testing.T) {
	s := newPageTest(t, "rayban_display")
	s.do(chromedp.Click("#tab-session"))
	s.see(`document.querySelector("#pane-session dl").innerText.includes("Ends if unused until") && /, local time$/.test(document.querySelector("#expires").textContent) && / UTC$/.test(document.querySelector("#expires").title)`)
	s.picture("session")
}

// Texts are cut between characters, and text that a file contains about itself does not become markup.
func TestSimulatorLog_CutsAndEscapes(t *testing.T) {
	s := newPageTest(t, "rayban_display")
	said := func(row string) string {
		t.Helper()
		s.do(chromedp.Evaluate[chromedp.Void](`window.said = ""; import("/assets/words.js").then((m) => { window.said = m.words(` + row + `).text; })`))
		s.see("window.said")
		return eval[string](s, "JSON.stringify(window.said.isWellFormed() ? window.said : 'a half character')")
	}
	if got, want := said(`{ type: "speech.say", kind: "request", sender: "app", took: -1, of: "", payload: { text: "x".repeat(79) + "😀 and more" } }`),
		fmt.Sprintf(`"\"%s…\""`, bytes.Repeat([]byte("x"), 79)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for more, want := range map[int]string{0: "1 part does not fit", 2: "3 parts do not fit"} {
		got := said(fmt.Sprintf(`{ type: "result", kind: "result", sender: "glasses", took: 1, of: "display.show", payload: { ok: true, findings: [{}], moreFindings: %d } }`, more))
		if want := fmt.Sprintf(`"ok in 1 ms, display.show, %s"`, want); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	s.do(chromedp.Evaluate[chromedp.Void](`Promise.all([import("/assets/share.js"), import("/assets/media.js")]).then(async ([{ Share }, { Media }]) => {
		const of = { log: { media: { get: () => window.medium } } };
		window.medium = { mime: 'image/png"onerror="window.isHacked=1', pictures: [], body: new Uint8Array([1]), parts: [new Uint8Array([1])] };
		window.html = [...(await Share.prototype.encodeMedia.call(of, [{ kind: "result", of: "camera.photo", id: "x" }])).html.values()].join();
	}).catch((e) => { window.html = String(e); })`))
	s.see("window.html")
	if got := eval[string](s, "window.html"); bytes.Contains([]byte(got), []byte(`"onerror`)) || !bytes.Contains([]byte(got), []byte("<img src=")) {
		t.Errorf("the medium is %s, want an escaped type", got)
	}
}

// The text of a card in the tab "Models" is inside its border.
func TestSimulatorModels_CardsHoldTheirVerdict(t *testing.T) {
	s := newPageTest(t, "rayban_display")
	s.showMenu()
	s.do(chromedp.EmulateViewport(1280, 800), chromedp.Click("#tab-models"))
	s.see(`document.querySelector(".model .badge").checkVisibility()`)
	s.see(`[...document.querySelectorAll(".model")].every((card) => { const c = card.getBoundingClientRect(), b = card.querySelector(".badge").getBoundingClientRect();
		return parseFloat(getComputedStyle(card).borderBottomWidth) > 0 && b.left > c.left && b.right < c.right && b.top > c.top && b.bottom < c.bottom; })`)
	s.picture("models-cards")
}
