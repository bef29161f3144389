//go:build unix

package e2e

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/service-dev/service/glasses/scenario"
)

// The report of session run opens as a local file and loads no other files. axe-core finds no violations in it in
// light mode, in dark mode, on a phone and with sections opened. The slider compares recorded and actual pictures.
func TestSessionRun_HTMLReport(t *testing.T) {
	t.Parallel()
	axe, browser := axeSource(t), newBrowser(t)
	w := newWorld(t, "")
	page := reportWithFailures(t, w)
	run(t, browser, "open the report", chromedp.Navigate("file://"+page), until(`document.readyState === "complete"`))
	if got, want := evaluate[string](t, browser, `document.title`), "2 of 4 failed, 1 could not be run"; got != want {
		t.Errorf("the report is titled %q, want %q", got, want)
	}
	if loaded := evaluate[int](t, browser,
		`performance.getEntriesByType("resource").filter(e => !e.name.startsWith("data:")).length`); loaded != 0 {
		t.Errorf("the report loads %d resources, want none", loaded)
	}
	if broken := evaluate[int](t, browser,
		`[...document.images].filter(i => i.naturalWidth === 0).length`); broken != 0 {
		t.Errorf("%d pictures failed to load", broken)
	}
	lookAtReport(t, browser, axe, "")
	slideBetweenPictures(t, browser)
	evaluate[bool](t, browser, `document.querySelector("li .zoom").click(), true`)
	if !evaluate[bool](t, browser, `document.querySelector("li.large .zoom")?.ariaExpanded === "true"`) {
		t.Error("a click on a thumbnail does not enlarge it")
	}
	evaluate[bool](t, browser, `document.querySelectorAll("details").forEach(d => { d.open = true }), true`)
	lookAtReport(t, browser, axe, "-open")
	run(t, browser, "print", chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"})
		return err
	}))
	if shown := evaluate[string](t, browser, `getComputedStyle(document.querySelector(".stack")).display`); shown != "none" {
		t.Errorf("in print the slider has display %s, want none", shown)
	}
	picture(t, browser, "report-print")
	if scripts := evaluate[int](t, browser, `document.querySelectorAll("body script").length`); scripts != 1 {
		t.Errorf("the report has %d scripts, want 1", scripts)
	}
}

// lookAtReport checks the open report with axe-core in both colour schemes and on a phone.
func lookAtReport(t *testing.T, browser context.Context, axe, how string) {
	t.Helper()
	for _, look := range []struct {
		name, scheme  string
		width, height int64
	}{{"", "light", 1200, 900}, {"-dark", "dark", 1200, 900}, {"-phone", "light", 390, 844}} {
		emulate(t, browser, look.scheme, look.width, look.height)
		for _, v := range axeViolations(t, browser, axe) {
			t.Errorf("axe violation in report%s%s: %s", how, look.name, v)
		}
		if wide := evaluate[bool](t, browser, `document.documentElement.scrollWidth > innerWidth + 1`); wide {
			t.Errorf("report%s%s is wider than the screen", how, look.name)
		}
		picture(t, browser, "report"+how+look.name)
	}
	emulate(t, browser, "light", 1200, 900)
}

// slideBetweenPictures moves the slider from the expected to the actual picture.
func slideBetweenPictures(t *testing.T, browser context.Context) {
	t.Helper()
	const clip = `(() => { const r = document.querySelector(".stack input"); r.value = %; r.dispatchEvent(new Event("input"));
		return [...document.querySelectorAll(".over img")].map(i => getComputedStyle(i).clipPath).join(" | ") })()`
	seen := map[string]bool{}
	for _, at := range []string{"0", "30", "100"} {
		seen[evaluate[string](t, browser, strings.Replace(clip, "%", at, 1))] = true
	}
	run(t, browser, "slide to the middle", until(`(() => { const r = document.querySelector(".stack input"); r.value = 25;
		r.dispatchEvent(new Event("input")); return true })()`))
	if len(seen) != 3 {
		t.Errorf("got pictures %v while moving the slider, want three different ones", seen)
	}
}

// reportWithFailures runs a passing scenario, a failing one, a recording with a different picture and an invalid
// file. It returns the path of the report.
func reportWithFailures(t *testing.T, w *world) string {
	t.Helper()
	app := filepath.Join(bin, "hello-glasses")
	dir := filepath.Join(filepath.Dir(w.dir), "tests")
	const named = `<script>document.title = 'x'</script>]]>`
	writeInto(t, filepath.Join(dir, "passes.json"),
		`{"scenario":1,"name":"passes","steps":[{"expectDisplay":{"text":["Hello, glasses"]}},{"picture":"start"}]}`)
	writeInto(t, filepath.Join(dir, "fails.json"), `{"scenario":1,"name":"`+named+`","deviceModel":"even_g1","steps":[
		{"input":{"kind":"tap"}},{"expectDisplay":{"text":["`+named+`"]}},{"picture":"end"}]}`)
	writeInto(t, filepath.Join(dir, "mistake.json"), `{"scenario":1,"name":"mistake","steps":[{"inputt":{}}]}`)
	recordHello(t, w, app, filepath.Join(dir, "recording"))
	page := filepath.Join(filepath.Dir(w.dir), "report.html")
	out, errs, code := w.ctl("session", "run", dir, "--html", page, "--", "sh", "-c",
		`exec "$0" -endpoint "$SERVICE_GLASSES_URL" -token-file "$SERVICE_GLASSES_SECRET_FILE"`, app)
	if code != 1 || !strings.Contains(out, "2 of 4 failed, 1 could not be run") {
		t.Fatalf("session run: exit %d, want 1 with 2 failures:\n%s%s", code, out, errs)
	}
	return page
}

// recordHello records one tap, and replaces the second picture with the first.
func recordHello(t *testing.T, w *world, app, dir string) {
	t.Helper()
	call := func(args ...string) string {
		t.Helper()
		out, errs, code := w.ctl(args...)
		if code != 0 {
			t.Fatalf("%v: exit %d, want 0\n%s%s", args, code, out, errs)
		}
		return out
	}
	var s struct{ SessionID, AppEndpoint, AppTokenFile string }
	opened := call("tool", "call", "startLocalSimulation", `{"clock":"virtual","fresh":true}`)
	if err := json.Unmarshal([]byte(opened), &s); err != nil {
		t.Fatal(err)
	}
	hello := exec.Command(app, "-endpoint", s.AppEndpoint, "-token-file", s.AppTokenFile)
	if err := hello.Start(); err != nil {
		t.Fatal(err)
	}
	call("tool", "call", "waitForEvent", `{"type":"display.show"}`)
	call("tool", "call", "expectDisplay", `{"text":["Hello, glasses"]}`)
	call("tool", "call", "injectInput", `{"kind":"tap"}`)
	call("tool", "call", "expectDisplay", `{"text":["Taps: 1"]}`)
	call("session", "record", s.SessionID, dir)
	call("session", "close", s.SessionID)
	_ = hello.Wait() // the app exits with an error when its session ends
	file := filepath.Join(dir, "scenario.json")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	recorded, err := scenario.Parse(data)
	if err != nil || len(recorded.Recorded.Pictures) != 2 {
		t.Fatalf("want a recording with two pictures: %v\n%s", err, data)
	}
	recorded.Recorded.Pictures[1].SHA256 = recorded.Recorded.Pictures[0].SHA256
	if data, err = recorded.Encode(); err != nil {
		t.Fatal(err)
	}
	writeInto(t, file, string(data))
}
