//go:build unix

package e2e

import (
	"context"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/chromedp/chromedp"
)

// The command shown on the page of a session without an app lets a terminal start one. axe-core finds no violations
// in any tab, while the page waits and afterwards.
func TestSimulatorPage_LookAndStart(t *testing.T) {
	t.Parallel()
	b := startBackend(t, "")
	w := newWorld(t, "", "SERVICE_BACKEND_URL="+b.url, "SERVICE_NO_AUTO_OPEN=1")
	a := startAgent(w, "modern", false)
	axe := axeSource(t)
	browser := newBrowser(t)
	asked := a.call("listProjects", map[string]any{})
	approve(t, browser, asked.str(t, "verificationUrl"), asked.str(t, "userCode"), "ada@example.org")
	a.call("completeAuthLink", map[string]any{"deviceCode": asked.str(t, "deviceCode")})
	session := a.call("createSimulatorSession", map[string]any{"project": app, "openBrowser": false})

	run(t, browser, "open the page", chromedp.Navigate(session.str(t, "sessionUrl")),
		until(`document.querySelector("#waiting")?.textContent === "Waiting for the app"`))
	checkLooks(t, browser, axe, "waiting")
	command := evaluate[string](t, browser, `document.querySelector("#start").textContent`)
	startFrom(t, w, command+` && exec hello-glasses -endpoint "$SERVICE_GLASSES_URL" -token-file "$SERVICE_GLASSES_SECRET_FILE"`)
	run(t, browser, "see the app", until(`document.querySelector("#waiting").textContent === "" && document.querySelector("#display").innerText.length > 0 && document.querySelector("#display").innerText !== "The panel is clear."`))
	checkLooks(t, browser, axe, "attached")

	run(t, browser, "look through the panel", chromedp.Click("#view-through"),
		until(`document.querySelector("#composite").checkVisibility() && document.querySelector("#see-through").checkVisibility()`))
	checkLooks(t, browser, axe, "see-through", "tab-models")
	run(t, browser, "choose a picture of one's own", chromedp.Evaluate[chromedp.Void](
		`{ const e = document.querySelector("#scene"); e.value = "file"; e.dispatchEvent(new Event("change")); }`),
		until(`document.querySelector("#scene-state").checkVisibility() && document.querySelector("#scene-choose").checkVisibility()`))
	checkLooks(t, browser, axe, "own-scene", "tab-use")
	checkTransferred(t, browser)
}

// maxTransferred is the maximum number of bytes that the simulator page may transfer.
const maxTransferred = 4_000_000

func checkTransferred(t *testing.T, browser context.Context) {
	t.Helper()
	n := evaluate[int](t, browser, `[...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")].reduce((n, e) => n + e.encodedBodySize, 0)`)
	if n == 0 || n > maxTransferred {
		t.Errorf("the page transfers %d bytes, want at most %d", n, maxTransferred)
	}
	t.Logf("the page transfers %d bytes", n)
}

// startFrom runs a line in the shell of a user who has the programs in PATH.
func startFrom(t *testing.T, w *world, line string) {
	t.Helper()
	cmd := exec.Command("bash", "-c", line)
	cmd.Env, cmd.Dir, cmd.Stderr = w.with("PATH="+w.bin+string(os.PathListSeparator)+os.Getenv("PATH")).env, w.project, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait()
	})
}

// checkLooks runs axe-core on the given tabs, or on all tabs, in light and dark mode, on a phone, at a zoom of 200 %
// and with reduced motion.
func checkLooks(t *testing.T, browser context.Context, axe, name string, tabs ...string) {
	t.Helper()
	for _, look := range []struct {
		name, scheme  string
		width, height int64
		zoom          float64
		without       []string
	}{
		{"light", "light", 1280, 800, 1, nil}, {"dark", "dark", 1280, 800, 1, nil}, {"phone", "light", 390, 844, 1, nil},
		{"phone-dark", "dark", 390, 844, 1, nil}, {"zoom-200", "light", 640, 400, 2, slowRules},
	} {
		emulate(t, browser, look.scheme, look.width, look.height)
		run(t, browser, "look at "+look.name, chromedp.EmulateViewport(look.width, look.height,
			chromedp.EmulateScale(look.zoom)))
		if look.scheme == "dark" && !evaluate[bool](t, browser, `matchMedia("(prefers-reduced-motion: reduce)").matches`) {
			t.Error("the browser does not ask for reduced motion")
		}
		shown := tabs
		if len(shown) == 0 {
			shown = evaluate[[]string](t, browser,
				`[...document.querySelectorAll("[role=tab]")].filter((e) => e.checkVisibility()).map((e) => e.id)`)
		}
		for _, tab := range shown {
			run(t, browser, "choose "+tab, chromedp.Evaluate[chromedp.Void](`document.querySelector("#`+tab+`").click()`))
			for _, v := range axeViolations(t, browser, axe, look.without...) {
				t.Errorf("axe violation on %s, %s, %s: %s", name, look.name, tab, v)
			}
			if evaluate[bool](t, browser, `document.documentElement.scrollWidth > innerWidth + 1`) {
				t.Errorf("%s, %s, %s is wider than the screen", name, look.name, tab)
			}
			if look.name == "light" || tab == "tab-use" || len(tabs) > 0 {
				picture(t, browser, "simulator-"+name+"-"+look.name+"-"+tab)
			}
		}
	}
	emulate(t, browser, "light", 1280, 800)
}
