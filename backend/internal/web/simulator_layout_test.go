package web

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/service-dev/service/glasses"
)

// layoutOf is JavaScript that lists wrongly placed elements: elements outside the window, and elements of the same
// group that overlap.
const layoutOf = `((groups) => {
	const wrong = [];
	const shown = (selector) => [...document.querySelectorAll(selector)].filter((e) => e.checkVisibility()).map((e) => [selector, e.getBoundingClientRect()]);
	for (const group of groups) {
		const boxes = group.flatMap(shown);
		for (const [name, b] of boxes) if (b.width === 0 || b.height === 0 || b.left < 0 || b.top < 0 || b.right > innerWidth + 0.5 || b.bottom > innerHeight + 0.5)
			wrong.push(name + " is outside: " + JSON.stringify(b));
		boxes.forEach(([name, a], i) => boxes.slice(i + 1).forEach(([other, b]) => {
			if (a.left < b.right - 0.5 && b.left < a.right - 0.5 && a.top < b.bottom - 0.5 && b.top < a.bottom - 0.5) wrong.push(name + " overlaps " + other);
		}));
	}
	return wrong;
})`

// visibleRows is JavaScript that counts the completely visible rows of the log.
const visibleRows = `(() => { const l = document.querySelector("#log").getBoundingClientRect();
	return [...document.querySelectorAll("#log > li")].filter((e) => { const b = e.getBoundingClientRect();
		return b.height > 0 && b.top >= l.top - 1 && b.bottom <= Math.min(l.bottom, innerHeight) + 1; }).length; })()`

func (s *pageTest) fillLog(n int) {
	s.t.Helper()
	for i := range n {
		s.row(glasses.Event{Kind: glasses.KindEvent, Chip: glasses.ChipCustom, Type: "com.example.score",
			ID: fmt.Sprint("fill-", i), Sender: glasses.SenderApp, Payload: json.RawMessage(`{"points":3}`)})
	}
	s.see(fmt.Sprintf(`parseInt(document.querySelector("#log-count").textContent) >= %d`, s.countRows()))
}

func TestSimulatorLayout_FitsOnOneScreen(t *testing.T) {
	for _, model := range []string{"rayban_display", "even_g1", "brilliant_frame", "system_audio"} {
		t.Run(model, func(t *testing.T) {
			s := newPageTest(t, model)
			s.result(s.command(glasses.TypeDisplayShow, json.RawMessage(menu)))
			s.fillLog(40)
			for _, size := range [][2]int64{{1280, 800}, {1024, 768}, {1920, 1080}} {
				s.do(chromedp.EmulateViewport(size[0], size[1]))
				s.see(visibleRows + " >= 5")
				s.seeWholePixels(model)
				for _, wrong := range eval[[]string](s, layoutOf+`([
					[".top", ".sim-title", ".sim-sub", ".tool", "#zoom-level", ".sim-state", ".stage", ".side", "#pane-log", ".bottom"],
					["#panel", "#no-panel", "#inputs > *", "#condition", "#panel-help", ".caption"], ["#tabs", "#pane-use"], ["#tab-use"], ["#say"],
					["#log-title", "#log-count", ".filter", "#search", "#export", "#log"]])`) {
					t.Errorf("at %v: %s", size, wrong)
				}
				if eval[bool](s, `document.documentElement.scrollHeight > innerHeight || document.body.scrollHeight > innerHeight`) {
					t.Errorf("at %v, the page scrolls", size)
				}
			}
		})
	}
}

// seeWholePixels waits until the panel fits its place and its pixels are crisp, unless it had to be made smaller.
func (s *pageTest) seeWholePixels(model string) {
	s.t.Helper()
	if m, _ := glasses.Model(model); m.Panel == nil {
		return
	}
	s.see(`(() => { const c = document.querySelector("#canvas"), l = document.querySelector("#lens"), scale = c.getBoundingClientRect().width / c.width;
		return l.scrollHeight <= l.clientHeight && l.scrollWidth <= l.clientWidth && (scale < 1 ? scale > 0.4 : Number.isInteger(scale) && c.dataset.crisp === "yes"); })()`)
}

func TestSimulatorLayout_PhoneBeginsWithThePanel(t *testing.T) {
	s := newPageTest(t, "rayban_display")
	s.showMenu()
	s.fillLog(40)
	s.do(chromedp.EmulateViewport(390, 844))
	for _, wrong := range eval[[]string](s, layoutOf+`([[".top", ".sim-head", "#panel", "#inputs", ".caption", "#tabs"], ["#panel", "#tabs"]])`) {
		t.Error(wrong)
	}
	s.see(`document.querySelector("#panel").getBoundingClientRect().bottom < document.querySelector("#tabs").getBoundingClientRect().top`)
	s.see(`!document.querySelector("#log").checkVisibility()`)
	s.see(`[...document.querySelectorAll("[role=tab]")].filter((e) => e.checkVisibility())[1].id === "tab-log" && document.querySelector("#tab-log").getBoundingClientRect().right < innerWidth`)
	s.see(`new Set([...document.querySelectorAll("[role=tab]")].filter((e) => e.checkVisibility()).map((e) => e.offsetTop)).size === 1`)
	s.see(`document.querySelector("#tabs").scrollWidth <= document.querySelector("#tabs").clientWidth`)
	s.see(`document.querySelector(".sim-title").textContent === "Hello"`)
	s.do(chromedp.Focus("#tab-use"), chromedp.KeyEvent(kb.ArrowRight))
	s.see(`document.activeElement.id === "tab-log" && !document.querySelector("#pane-use").checkVisibility()`)
	s.see(`document.querySelector("#pane-log").role === "tabpanel"`)
	s.see(`(() => { const l = document.querySelector("#tabs").getBoundingClientRect(), b = document.activeElement.getBoundingClientRect(); return b.left >= l.left && b.right <= l.right + 1; })()`)
	s.do(chromedp.ScrollIntoView("#log"))
	s.see(visibleRows + " >= 5")
	s.picture("phone-log")
	// On a wide page, the log is no longer a tab, so the first tab is selected instead.
	s.do(chromedp.EmulateViewport(1280, 800))
	s.see(`document.querySelector("#pane-use").checkVisibility() && document.querySelector("#log").checkVisibility() && !document.querySelector("#tab-log").checkVisibility()`)
	s.see(`document.querySelector("#pane-log").role === null`)
}

func TestSimulatorLayout_TabsByKeyboard(t *testing.T) {
	s := newPageTest(t, "rayban_display")
	s.do(chromedp.Focus("#tab-use"))
	for _, step := range []struct{ key, want string }{
		{kb.ArrowRight, "glasses"}, {kb.ArrowRight, "senses"}, {kb.ArrowRight, "faults"}, {kb.ArrowRight, "models"}, {kb.End, "session"},
		{kb.ArrowRight, "use"}, {kb.ArrowLeft, "session"}, {kb.Home, "use"}, {kb.ArrowRight, "glasses"},
	} {
		s.do(chromedp.KeyEvent(step.key))
		s.see(`document.activeElement.id === "tab-` + step.want + `"`)
		got := eval[[]string](s, `[...document.querySelectorAll("[role=tab]")].filter((t) => t.ariaSelected === "true" && t.tabIndex === 0).map((t) => t.id)
			.concat([...document.querySelectorAll("[role=tabpanel]")].filter((p) => p.checkVisibility()).map((p) => p.id))`)
		if want := []string{"tab-" + step.want, "pane-" + step.want}; !slices.Equal(got, want) {
			t.Errorf("after a key: got chosen tab and visible panel %v, want %v", got, want)
		}
	}
	s.do(chromedp.KeyEvent(kb.Tab))
	s.see(`document.activeElement.id === "pane-glasses"`)
	s.do(chromedp.KeyEvent(kb.Tab))
	s.see(`document.activeElement.id === "device"`)
	s.do(chromedp.Reload())
	s.see(isConnected + ` &&
		document.querySelector("#pane-glasses").checkVisibility()`)
	s.do(chromedp.Click("#tab-use"), chromedp.Click("#model-open"))
	s.see(`document.activeElement.id === "device"`)
}

func TestSimulatorLayout_ToolbarByKeyboard(t *testing.T) {
	s := newPageTest(t, "rayban_display")
	s.do(chromedp.Focus("#zoom-out"))
	for _, step := range []struct{ key, want string }{
		{kb.ArrowRight, "zoom-in"}, {kb.ArrowRight, "zoom-fit"}, {kb.ArrowRight, "grid"}, {kb.ArrowRight, "screenshot"},
		{kb.ArrowRight, "clip"}, {kb.ArrowRight, "copy-step"}, {kb.ArrowRight, "view-opaque"},
		{kb.ArrowRight, "view-through"}, {kb.ArrowRight, "zoom-out"}, {kb.ArrowLeft, "view-through"}, {kb.Home, "view-opaque"},
	} {
		s.do(chromedp.KeyEvent(step.key))
		s.see(`document.activeElement.id === "` + step.want + `"`)
	}
}

func TestSimulatorLayout_WaitsForTheApp(t *testing.T) {
	s := newPageTest(t, "rayban_display")
	s.showMenu()
	s.see(`document.querySelector("#waiting").textContent === "" && getComputedStyle(document.querySelector("#canvas")).opacity === "1"`)
	s.see(`!document.querySelector("#start").checkVisibility()`)
	s.send(glasses.TypePeers, "", glasses.Peers{Apps: []glasses.AppInfo{}, Pages: 1})
	s.see(`document.querySelector("#waiting").checkVisibility() && document.querySelector("#waiting").textContent === "Waiting for the app"`)
	s.see(`getComputedStyle(document.querySelector("#canvas")).opacity < 0.5`)
	for _, wrong := range eval[[]string](s, layoutOf+`([["#panel", "#inputs"], ["#start"], ["[data-copy=start]"]])`) {
		t.Error(wrong)
	}
	s.see(`(() => { const p = document.querySelector("#panel").getBoundingClientRect(), l = document.querySelector("#lens").getBoundingClientRect(); return Math.abs(p.left - l.left - (l.right - p.right)) < 2; })()`)
	s.picture("waiting")
	s.do(chromedp.Evaluate[chromedp.Void](`navigator.clipboard.writeText = async (text) => { window.copied = text; }`),
		chromedp.Click(`[data-copy=start]`))
	s.see(`window.copied === 'eval "$(servicectl session env ` + pageTestSession + `)"'`)
	s.see(`document.querySelector("[data-copy=start]").textContent === "Copied"`)
	s.send(glasses.TypePeers, "", glasses.Peers{Apps: []glasses.AppInfo{{Name: "Hello"}}, Pages: 1})
	s.see(`!document.querySelector("#waiting").checkVisibility() && getComputedStyle(document.querySelector("#canvas")).opacity === "1"`)
}

func TestSimulatorLayout_ForgetsOneFault(t *testing.T) {
	s := newPageTest(t, "rayban_display")
	s.do(chromedp.Click("#tab-faults"))
	for i, code := range []string{"busy", "timeout", "paused"} {
		s.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`document.querySelector("#fault-command").value = "camera.photo"; document.querySelector("#fault-code").value = %q;
			document.querySelector("#fault-latency").value = %d; document.querySelector("#fault-times").value = %d; document.querySelector("#faults").requestSubmit();`, code, 10*i, i+1)))
		s.next(glasses.TypeFault, "")
	}
	s.see(`document.querySelector("#fault-count").textContent === "3"`)
	s.picture("faults")
	s.do(chromedp.Focus("#fault-list li:nth-child(2) button"), chromedp.KeyEvent(kb.Enter))
	s.see(`document.querySelectorAll("#fault-list li").length === 2 && document.activeElement === document.querySelector("#fault-list li:nth-child(2) button")`)
	if text := s.text("#fault-list"); !strings.Contains(text, "busy, once more") ||
		!strings.Contains(text, "paused, 20 ms late, 3 times more") || strings.Contains(text, "timeout") {
		t.Errorf("after one fault was forgotten, the list is %q; want the two others", text)
	}
	for _, want := range []string{glasses.CodeBusy, glasses.CodePaused} {
		if r := s.result(s.command(glasses.TypeCameraPhoto, struct{}{})); r.Error == nil || r.Error.Code != want {
			t.Errorf("photo: got error %+v, want %s", r.Error, want)
		}
	}
	s.see(`document.querySelector("#fault-list").innerText.includes("2 times more")`)
	s.do(chromedp.Click("#fault-list button"))
	s.see(`document.querySelectorAll("#fault-list li").length === 0 && document.querySelector("#fault-count").hidden && document.querySelector("#fault-none").checkVisibility()`)
}
