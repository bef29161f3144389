package web

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/go-cmp/cmp"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/render"
	"github.com/service-dev/service/glasses/scenario"
	"github.com/service-dev/service/test/chromium"
)

func TestSimulatorTools_GridCanBeSwitchedOff(t *testing.T) {
	s := newPageTest(t, "even_g1")
	s.see(`document.querySelector("#grid").ariaPressed === "false" && document.querySelector("#grid").ariaDisabled === "true"`)
	s.do(chromedp.Click("#grid")) // has no effect below 4×
	for eval[string](s, `document.querySelector("#zoom-level").textContent`) != "4×" {
		s.do(chromedp.Click("#zoom-in"))
	}
	s.see(`document.querySelector("#grid").ariaPressed === "true" && document.querySelector("#grid").ariaDisabled === null`)
	if !s.grid() {
		t.Error("at 4×, the page draws no grid")
	}
	s.picture("tools-grid")
	s.do(chromedp.Focus("#grid"), chromedp.KeyEvent(kb.Enter))
	s.see(`document.querySelector("#grid").ariaPressed === "false"`)
	if s.grid() {
		t.Error("the page draws the grid that was switched off")
	}
	s.do(chromedp.Click("#zoom-in"))
	if s.grid() {
		t.Error("a larger zoom switched the grid on again")
	}
	s.do(chromedp.Click("#grid"))
	s.see(`document.querySelector("#grid").ariaPressed === "true"`)
	if !s.grid() {
		t.Error("the page draws no grid although it was switched on")
	}
}

func TestSimulatorTools_CopiesAStep(t *testing.T) {
	s := newPageTest(t, "rayban_display")
	s.do(chromedp.Evaluate[chromedp.Void](`window.copied = ""; navigator.clipboard.writeText = async (text) => { window.copied = text; }`))
	copyStep := func() []scenario.Step {
		t.Helper()
		s.do(chromedp.Evaluate[chromedp.Void](`window.copied = ""`), chromedp.Click("#copy-step"))
		s.see("window.copied")
		text := eval[string](s, "window.copied")
		steps, err := scenario.ParseSteps([]byte("[" + text + "]"))
		if err != nil {
			t.Fatalf("a scenario refuses %s: %v", text, err)
		}
		return steps
	}
	if steps := copyStep(); len(steps) != 1 || steps[0].ExpectDisplay == nil || steps[0].ExpectDisplay.Picture == "" {
		t.Errorf("of a clear panel the step is %+v, want one that expects its picture", steps)
	}
	s.showMenu()
	s.do(chromedp.Focus("#panel"), chromedp.KeyEvent(kb.ArrowDown))
	s.next(glasses.TypeInput, "")
	want := []scenario.Step{{ExpectDisplay: &scenario.ExpectDisplay{InOrder: true, Focus: new("lake"),
		Text: []string{"Trails near you", "Pick one and look up.", "Ridge walk", "Round the lake", "Old mill"}}}}
	if diff := cmp.Diff(want, copyStep()); diff != "" {
		t.Error(diff)
	}
	s.see(`document.querySelector("#copy-step").textContent === "Copied"`)
	s.see(`document.querySelector("#copy-step").textContent === "Copy as step"`)

	s.do(chromedp.Evaluate[chromedp.Void](`navigator.clipboard.writeText = () => Promise.reject(new Error("no"))`), chromedp.Click("#copy-step"))
	s.see(`document.querySelector("#notice").checkVisibility() && document.querySelector("#notice").innerText.includes('"expectDisplay"')`)
}

func TestSimulatorTools_ClipHasTheLast30Seconds(t *testing.T) {
	s := newPageTest(t, "even_g1")
	m := mustModel(t, "even_g1")
	show := func(name string) *image.NRGBA {
		display := fmt.Sprintf(`{"tree":{"type":"text","style":"large","text":%q}}`, name)
		s.result(s.command(glasses.TypeDisplayShow, json.RawMessage(display)))
		return render.Draw(m, render.Clamp(m, glasses.View{Tree: treeOf(t, display)}))
	}
	// The test sets the page's clock, so that it does not have to wait.
	s.do(chromedp.Evaluate[chromedp.Void](`{ window.clock = performance.now(); performance.now = () => window.clock; }`))
	later := func(seconds int) {
		s.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf("window.clock += %d", 1000*seconds)))
	}
	show("too long ago")
	later(60)
	pictures := map[string]*image.NRGBA{}
	for _, name := range []string{"HHHHHHHHHH", "....", "\u2588\u2588\u2588\u2588"} {
		pictures[name] = show(name)
		later(12)
	}
	later(3) // seconds 0 to 3 before the end show the third picture, which was shown for 15 s
	s.catchFiles()
	s.do(chromedp.Focus("#clip"), chromedp.KeyEvent(kb.Enter))
	s.see("window.shot && window.shotName.endsWith('.webm')")
	s.see(`document.querySelector("#clip").textContent === "Saved"`)
	if dir := os.Getenv("SCREENSHOTS"); dir != "" {
		data, _ := base64.StdEncoding.DecodeString(eval[string](s, "window.shot"))
		if err := os.WriteFile(filepath.Join(dir, "clip.webm"), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	video := newVideo(s, eval[string](s, "window.shot"))
	if d := eval[float64](video, "video.duration"); math.Abs(d-30) > 0.2 {
		t.Errorf("the clip lasts %v s, want 30", d)
	}
	// The display commands were 39, 27 and 15 seconds before the end.
	for at, want := range map[float64]string{0.2: "HHHHHHHHHH", 2.5: "HHHHHHHHHH", 3.6: "....", 14.5: "....",
		15.6: "\u2588\u2588\u2588\u2588", 29.9: "\u2588\u2588\u2588\u2588"} {
		got := video.at(at)
		for name, picture := range pictures {
			if d := difference(t, got, picture); (d < 3) != (name == want) {
				t.Errorf("at %v s the clip differs from %q by %.1f, want the picture of %q", at, name, d, want)
			}
		}
	}
}

// newVideo opens a WebM in a separate page, because the simulator page may not play any.
func newVideo(s *pageTest, data string) *pageTest {
	s.t.Helper()
	tab, _ := chromium.Tab(s.ctx, s.t)
	v := &pageTest{t: s.t, ctx: tab}
	v.do(chromedp.Evaluate[chromedp.Void](`var video = document.createElement("video"); video.muted = true; video.src = "data:video/webm;base64,` + data + `";`))
	v.see("video.readyState >= 2 || video.error")
	if problem := eval[string](v, `video.error?.message ?? ""`); problem != "" {
		s.t.Fatalf("the browser does not play the clip: %s", problem)
	}
	return v
}

// at returns the picture of the video at a time.
func (s *pageTest) at(seconds float64) *image.NRGBA {
	s.t.Helper()
	s.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`window.sought = false; video.onseeked = () => { window.sought = true; }; video.currentTime = %v;`, seconds)))
	s.see("window.sought && video.readyState >= 2")
	url := eval[string](s, `(() => { const c = document.createElement("canvas"); c.width = video.videoWidth; c.height = video.videoHeight;
		c.getContext("2d").drawImage(video, 0, 0); return c.toDataURL("image/png"); })()`)
	data, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(url, "data:image/png;base64,"))
	if err != nil {
		s.t.Fatal(err)
	}
	return decodePNG(s.t, data)
}

// difference returns the mean difference between a video's picture, which has twice the panel's resolution, and a
// panel.
func difference(t *testing.T, video, panel *image.NRGBA) float64 {
	t.Helper()
	if want := image.Rect(0, 0, 2*panel.Rect.Dx(), 2*panel.Rect.Dy()); video.Rect != want {
		t.Fatalf("the clip has %v pixels, want %v", video.Rect, want)
	}
	sum, n := 0.0, 0
	for y := range video.Rect.Dy() {
		for x := range video.Rect.Dx() {
			for c := range 3 {
				sum += math.Abs(float64(video.Pix[video.PixOffset(x, y)+c]) - float64(panel.Pix[panel.PixOffset(x/2, y/2)+c]))
				n++
			}
		}
	}
	return sum / float64(n)
}

// A clip costs nothing until it is requested: only snapshots are kept, at most ten a second.
func TestSimulatorTools_ClipKeepsOnlySnapshots(t *testing.T) {
	s := newPageTest(t, "rayban_display")
	s.see("window.glasses")
	s.do(chromedp.Evaluate[chromedp.Void](`{ window.replays = 0; const show = glasses.show; glasses.show = (x) => { window.replays++; return show(x); }; }`))
	for n := range 60 {
		s.result(s.command(glasses.TypeDisplayShow, json.RawMessage(fmt.Sprintf(`{"tree":{"type":"text","text":"%d"}}`, n))))
	}
	if n := eval[int](s, "replays"); n != 0 {
		t.Errorf("%d snapshots were drawn before anybody asked for a clip", n)
	}
	s.catchFiles()
	s.do(chromedp.Click("#clip"))
	s.see("window.shot")
	if n := eval[int](s, "replays"); n == 0 || n > 60 {
		t.Errorf("%d snapshots were drawn for a clip of 60 shows", n)
	}
}

func TestSimulatorTools_NoClipWithoutAnEncoder(t *testing.T) {
	s := newPageTest(t, "even_g1")
	s.beforeScripts("delete window.VideoEncoder")
	s.do(chromedp.Reload())
	s.see(isConnected + ` &&
		document.querySelector("#clip").ariaDisabled === "true" &&
		document.querySelector("#clip").title === "This browser cannot make WebM clips."`)
	s.do(chromedp.Click("#clip"))
	s.see(`document.querySelector("#notice").innerText === "This browser cannot make WebM clips."`)
}

func TestSimulatorTools_StayInOneRow(t *testing.T) {
	s := newPageTest(t, "rayban_display")
	s.showMenu()
	row := `(() => { const list = [...document.querySelectorAll(".tool, #zoom-level, #socket")].filter((e) => e.checkVisibility()).map((e) => e.getBoundingClientRect());
		return new Set(list.map((b) => Math.round(b.top + b.height / 2))).size; })()`
	for _, width := range []int64{1280, 1440, 1920} {
		s.do(chromedp.EmulateViewport(width, 800))
		s.see(row + " === 1")
		s.see(`new Set([...document.querySelectorAll(".tool, #socket")].map((e) => e.getBoundingClientRect().height)).size === 1`)
	}
	s.picture("tools")
	s.do(chromedp.EmulateViewport(390, 844))
	for _, wrong := range eval[[]string](s, layoutOf+`([[".tool", "#zoom-level"], ["#panel", "#tabs"]])`) {
		t.Error(wrong)
	}
}
