package connpage

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/service-dev/service/test/chromium"
)

// embedder is the page of an app that shows the connection page in a frame and records its messages.
const embedder = `<!doctype html><title>App</title><iframe id="frame" width="420" height="900"></iframe>
<script>window.got = []; addEventListener("message", (e) => got.push(e.data)); document.getElementById("frame").src = "/page";</script>`

type window struct {
	t   *testing.T
	ctx context.Context
	url string
}

// openWindow starts a browser and a server, with the connection page at /page and an embedding app at /.
func openWindow(t *testing.T, p Page) *window {
	t.Helper()
	d, err := Render(p, Live)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(rw http.ResponseWriter, _ *http.Request) { fmt.Fprint(rw, embedder) })
	mux.HandleFunc("GET /page", func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Security-Policy", d.Policy+"; frame-ancestors *")
		_, _ = rw.Write(d.HTML)
	})
	mux.HandleFunc("GET /favicon.ico", func(http.ResponseWriter, *http.Request) {})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	ctx := chromium.Open(t, chromedp.WindowSize(900, 1000))
	return &window{t, ctx, server.URL}
}

func (w *window) do(steps ...chromedp.Action[chromedp.Void]) {
	w.t.Helper()
	if err := chromium.Do(w.ctx, steps...); err != nil {
		w.t.Fatal(err)
	}
}

// see waits until a JavaScript condition holds in the page.
func (w *window) see(js string) {
	w.t.Helper()
	if chromium.Eventually(w.ctx, js) {
		return
	}
	text, _ := chromium.Run(w.ctx,
		chromedp.Evaluate[string](`document.body.innerText + "\n" + (window.frames[0]?.document.body.innerText ?? "") + JSON.stringify(window.got ?? null)`))
	w.t.Fatalf("the condition never became true: %s; the page shows:\n%s", js, text)
}

func (w *window) run(js string) {
	w.t.Helper()
	if _, err := chromium.Run(w.ctx, chromedp.Evaluate[bool](js+"; true")); err != nil {
		w.t.Fatalf("%s: %v", js, err)
	}
}

func (w *window) scheme(name string) {
	w.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}}})
		return err
	}))
}

// picture saves a screenshot for review if SCREENSHOTS is set to a directory.
func (w *window) picture(name string, width, height int64) {
	dir := os.Getenv("SCREENSHOTS")
	if dir == "" {
		return
	}
	w.do(chromedp.EmulateViewport(width, height))
	png, err := chromium.Run(w.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "connect-"+name+".png"), png, 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// In an app's frame, the page announces itself, shows the glasses' state as the app reports it, and tells the app
// when a switch changes. Everything works with the keyboard, and the page's own policy blocks nothing.
func TestPage_InsideApp(t *testing.T) {
	w := openWindow(t, chef())
	console := chromedp.Console(w.ctx)
	const page = `frames[0].document`
	w.do(chromedp.Navigate(w.url + "/"))
	w.see(`got.some((m) => m.type === "glasses.ready" && m.toggles.captions === true && m.toggles.chime === false)`)
	w.see(page + `.querySelector("#connect:not([hidden])")?.textContent === "Connect glasses" && ` + page +
		`.querySelector("#alone").hidden`)

	w.run(`frames[0].focus(); ` + page + `.querySelector("#connect").focus()`)
	w.do(chromedp.KeyEvent("\r"))
	w.see(`got.some((m) => m.type === "glasses.connect") && ` + page +
		`.querySelector("#connect").textContent === "Cancel"`)
	w.run(`frames[0].postMessage({type: "glasses.status", state: "connected", deviceModel: "Even G1", battery: 81.6, message: "<b>Ready</b>"}, "*")`)
	w.see(page + `.querySelector("#state").textContent === "Connected" && ` + page +
		`.querySelector("#model").textContent === "Even G1" && ` +
		page + `.querySelector("#battery-text").textContent === "82%" && ` + page +
		`.querySelector("#message").textContent === "<b>Ready</b>"`)

	w.run(page + `.querySelector("#toggle-captions").focus()`)
	w.do(chromedp.KeyEvent(" "))
	w.see(`got.some((m) => m.type === "glasses.toggle" && m.id === "captions" && m.on === false)`)

	// Invalid messages change nothing. A status without details clears the details.
	w.run(`for (const m of [null, 1, "{", {type: "glasses.status", state: "constructor"}, {type: "other", state: "disconnected"}]) frames[0].postMessage(m, "*")`)
	w.run(`frames[0].postMessage(JSON.stringify({type: "glasses.status", state: "connected", battery: "full"}), "*")`)
	w.see(page + `.querySelector("#message").hidden && ` + page + `.querySelector("#facts").hidden && ` + page +
		`.body.dataset.state === "connected"`)
	w.run(page + `.querySelector("#connect").click()`)
	w.see(`got.some((m) => m.type === "glasses.disconnect") && ` + page +
		`.querySelector("#state").textContent === "Not connected"`)

	// A switch keeps its position when the page is reloaded.
	w.do(chromedp.Navigate(w.url + "/"))
	w.see(`got.some((m) => m.type === "glasses.ready" && m.toggles.captions === false)`)
	w.run(`console.log("the end")`)
	for m, err := range console {
		if err != nil || m.Text == "the end" {
			break
		}
		t.Errorf("got %s in the console, want nothing", m)
	}
}

// Without an embedding app, the page reports that no app is connected. In an app's web view, it exchanges messages
// through the web view's bridge.
func TestPage_WithoutAppAndInWebViews(t *testing.T) {
	w := openWindow(t, chef())
	w.do(chromedp.Navigate(w.url + "/page"))
	w.see(`!document.querySelector("#alone").hidden && document.querySelector("#connect").hidden`)
	w.scheme("light")
	w.picture("alone-light", 390, 844)
	w.run(`window.said = []; addEventListener("glassesconnection", (e) => said.push(e.detail));
		window.native = []; window.ReactNativeWebView = {postMessage: (text) => native.push(JSON.parse(text))};
		window.glassesConnection.update({state: "connected", deviceModel: "Even G1", battery: 82, message: "All set."})`)
	w.see(`document.querySelector("#alone").hidden && document.querySelector("#state").textContent === "Connected"`)
	for _, scheme := range []string{"light", "dark"} {
		w.scheme(scheme)
		w.picture("connected-"+scheme, 390, 844)
		w.picture("desktop-"+scheme, 1100, 900)
	}
	w.run(`document.querySelector("#toggle-chime").click()`)
	w.see(`said.length === 1 && native.length === 1 && native[0].id === "chime" && native[0].on === true`)
	w.run(`window.glassesConnection.update('{"state": "connecting", "message": "Looking for glasses nearby"}')`)
	w.see(`document.querySelector("#state").textContent === "Connecting" && !document.querySelector("#message").hidden`)
	w.picture("connecting-dark", 390, 844)
	w.stumbles()
}

// stumbles fails the test if axe-core finds an accessibility problem in either colour scheme. It runs only if AXE is
// set to the path of axe-core.
func (w *window) stumbles() {
	file := os.Getenv("AXE")
	if file == "" {
		return
	}
	axe, err := os.ReadFile(file)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, scheme := range []string{"light", "dark"} {
		w.scheme(scheme)
		w.run(string(axe))
		w.run(`window.found = null; axe.run(document, {resultTypes: ["violations"]}).then((r) => { window.found = r.violations.map((v) => v.id + ": " + v.nodes.map((n) => n.html + " " + n.failureSummary)).join("\n"); })`)
		w.see(`found !== null`)
		if found, err := chromium.Run(w.ctx, chromedp.Evaluate[string](`found`)); err != nil || found != "" {
			w.t.Errorf("%s: %s (%v)", scheme, found, err)
		}
	}
}
