//go:build unix

package e2e

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/service-dev/service/internal/loopback"
	"github.com/service-dev/service/test/chromium"
)

// After a restart of the daemon, pages and apps reach the embedded backend without a call by an agent.
func TestEmbeddedBackend_ServesAfterRestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	at := backendURL(t, w)
	for range 2 {
		if out, errs, exit := w.ctl("daemon", "restart"); exit != 0 {
			t.Fatal(out, errs)
		}
		must(t, "the embedded backend answers", func() bool {
			resp, err := http.Get(at + "/api/health")
			if err != nil {
				return false
			}
			defer resp.Body.Close()
			return resp.StatusCode == http.StatusOK
		})
	}
}

// A program takes the embedded backend's port while the daemon is stopped, and its page leaves a service worker in
// the owner's browser. When the daemon is back, the backend removes the worker. If the port was free for longer, the
// backend uses another port, so that the worker cannot serve its pages even once.
func TestEmbeddedBackend_PlantedServiceWorker(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	linked := issueCode(t, &remoteBackend{url: backendURL(t, w)})
	site := mustParse(t, linked.VerificationURL)
	browser := newBrowser(t)
	run(t, browser, "open the backend's page", chromedp.Navigate("http://"+site.Host+"/signin"),
		until(`document.title !== "Planted"`))
	w.stopDaemon()

	planted := plantWorker(t, site)
	run(t, browser, "open the program's page", chromedp.Navigate("http://"+site.Host+"/"),
		until(`navigator.serviceWorker.controller`))
	planted.Close()

	setPortHeld(t, w, time.Now()) // regardless of how long that took on this machine
	if at := backendURL(t, w); mustParse(t, at).Port() != site.Port() {
		t.Fatalf("after a moment the backend is at %s, want port %s", at, site.Port())
	}
	run(t, browser, "open the backend's page again", chromedp.Navigate("http://"+site.Host+"/signin"),
		until(`document.title !== "Planted" && document.querySelector("input[name=email]")`))
	left, err := chromium.Run(browser, chromedp.Evaluate[int](
		`navigator.serviceWorker.getRegistrations().then((all) => all.length)`, chromedp.EvalAwaitPromise))
	if err != nil || left != 0 {
		t.Errorf("%d service workers are left (%v), want none", left, err)
	}

	w.stopDaemon()
	setPortHeld(t, w, time.Now().Add(-time.Minute))
	if at := backendURL(t, w); mustParse(t, at).Port() == site.Port() {
		t.Errorf("after a minute the backend is at %s again", at)
	}
}

// setPortHeld sets the time until which the embedded backend's port counts as held.
func setPortHeld(t *testing.T, w *world, until time.Time) {
	t.Helper()
	if err := os.Chtimes(filepath.Join(w.dir, "backend", "port"), until, until); err != nil {
		t.Fatal(err)
	}
}

// plantWorker serves a page on the site's port that registers a service worker. The worker answers every request with
// that page.
func plantWorker(t *testing.T, site *url.URL) *httptest.Server {
	t.Helper()
	const page = `<!doctype html><title>Planted</title><script>navigator.serviceWorker.register("/worker.js")</script>`
	const worker = `addEventListener("install", () => skipWaiting());
		addEventListener("activate", (e) => e.waitUntil(clients.claim()));
		addEventListener("fetch", (e) => e.respondWith(new Response(` + "`" + page + "`" + `, { headers: { "Content-Type": "text/html" } })));`
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(rw http.ResponseWriter, _ *http.Request) { _, _ = rw.Write([]byte(page)) })
	mux.HandleFunc("/worker.js", func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/javascript")
		_, _ = rw.Write([]byte(worker))
	})
	file := filepath.Join(t.TempDir(), "port")
	if err := os.WriteFile(file, []byte(site.Port()), 0o600); err != nil {
		t.Fatal(err)
	}
	listeners, err := loopback.Listen(t.Context(), loopback.ReadPort(file))
	if err != nil || loopback.Port(listeners[0]) != loopback.ReadPort(file) {
		t.Fatalf("the port is not free: %v", err)
	}
	server := httptest.NewUnstartedServer(mux)
	server.Listener.Close()
	server.Listener = listeners[0]
	server.Start()
	t.Cleanup(server.Close)
	for _, l := range listeners[1:] {
		l.Close()
	}
	return server
}
