//go:build linux

package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/test/chromium"
	"github.com/service-dev/service/test/glassestest/peripheral/g1"
)

// glassesPage is the page where a user connects the emulated pair, in a real Chromium.
type glassesPage struct {
	*airSpace
	do      func(chromedp.Action[chromedp.Void])
	openTab func(url string)
	press   func(side g1.Side)
	await   func(js string)
}

func newGlassesPage(w *airSpace) *glassesPage {
	w.t.Helper()
	tab := chromium.OpenBluetooth(w.t, w.radio.Address)
	chooser := chromium.NewChooser(tab, w.t)
	do := func(step chromedp.Action[chromedp.Void]) {
		w.t.Helper()
		if err := chromium.Do(tab, step); err != nil {
			w.t.Fatal(err)
		}
	}
	return &glassesPage{
		airSpace: w,
		do:       do,
		openTab:  func(url string) { do(chromedp.Navigate(url)) },
		press: func(side g1.Side) {
			w.t.Helper()
			do(chromium.Press(fmt.Sprintf("[data-key=%s] button", side)))
			name := ""
			w.radio.Emulate(func(int64) {
				adv, _ := w.pair.Arm(side).Advertisement()
				name = adv.Name
			})
			chooser.Pick(name)
		},
		await: func(js string) {
			w.t.Helper()
			if _, err := chromium.Run(tab, chromedp.Poll[bool](js)); err != nil {
				w.t.Fatalf("wait for %s on the page: %v", js, err)
			}
		},
	}
}

// visit makes an agent request glasses over a page, and the user connect both arms there. It returns the page's
// address.
func (p *glassesPage) visit(a *agent) (s toolResult, url string) {
	p.t.Helper()
	args := map[string]any{"deviceModel": "even_g1", "via": "browser", "timeoutSeconds": 60}
	s = a.call("connectRealDevice", args)
	real, _ := s.Structured["glasses"].(map[string]any)
	url, _ = real["url"].(string)
	if s.Structured["status"] != "waiting_for_person" || !strings.HasPrefix(url, "http://127.0.0.1:") {
		p.t.Fatalf("connectRealDevice: got %v, want a page for the person", s.Structured)
	}
	p.openTab(url)
	p.press(g1.Left)
	p.press(g1.Right)
	again := a.call("connectRealDevice", args)
	if again.Structured["status"] != "connected" || again.str(p.t, "sessionId") != s.str(p.t, "sessionId") {
		p.t.Fatalf("connectRealDevice: got %v, want the same session connected", again.Structured)
	}
	return s, url
}

// An agent requests glasses, a user opens the page and clicks twice, and the app's picture is on both arms. Only the
// agent receives the address of the page.
func TestRealGlasses_ConnectOverAPage(t *testing.T) {
	t.Parallel()
	w := newAirSpace(t)
	a := startAgent(w.world, "modern", false)
	page := newGlassesPage(w)
	s, url := page.visit(a)
	if got := w.openedURLs(); !slices.Equal(got, []string{url}) {
		t.Errorf("opened %q in the person's browser, want %q", got, url)
	}
	app := attach(t, s.str(t, "appEndpoint"), secretIn(t, s.str(t, "appTokenFile")))
	app.send(glasses.TypeDisplayShow, "shown", glasses.Show{Tree: glasses.Node{Type: glasses.NodeText, Text: "shown"}})
	must(t, "both arms show the picture", func() bool { return len(w.panels()) == 2 })
	w.wantPanels(panelPicture(t, a, s.str(t, "sessionId")))
	a.call("closeSession", map[string]any{"sessionId": s.str(t, "sessionId")})
	must(t, "the panels are dark after the session", func() bool { return len(w.panels()) == 0 })
	page.await(`document.body.innerText.includes("The session has ended")`)

	_, token, _ := strings.Cut(url, "#")
	spool, _, _ := w.ctl("telemetry", "show", "--json")
	log, err := os.ReadFile(filepath.Join(w.dir, "log", "serviced.log"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(spool+string(log), token) || token == "" {
		t.Error("the token of the page is in the log or in usage events")
	}
	w.radio.Emulate(func(int64) {
		if v := w.pair.Violations(); len(v) > 0 {
			t.Errorf("the adapter broke the protocol of the glasses: %v", v)
		}
	})
}

// A server on another port of the same address receives nothing that would let it open the page. The page can be
// reloaded.
func TestRealGlasses_PageHasNoCookie(t *testing.T) {
	t.Parallel()
	w := newAirSpace(t)
	page, agents := newGlassesPage(w), newAgentPage(t)
	_, url := page.visit(startAgent(w.world, "modern", false))
	page.openTab("http://127.0.0.1:" + agents.port)
	page.await(`document.title === "My app"`)
	if got := agents.cookies(); len(got) > 0 {
		t.Errorf("the browser sent the agent's page the cookies %v, want none", got)
	}
	address, _, _ := strings.Cut(url, "#")
	for _, method := range []string{"GET", "POST"} {
		path := map[string]string{"GET": "links?take", "POST": "admit"}[method]
		req, err := http.NewRequestWithContext(t.Context(), method, address+path,
			strings.NewReader(`{"token":"","secret":""}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Origin", strings.TrimSuffix(address, "/"))
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode < 400 {
			t.Errorf("%s %s without the secret: got status %d, want a refusal", method, path, resp.StatusCode)
		}
	}
	page.openTab(address)
	page.await(`document.body.dataset.view === "live"`)
}

// The user's answers about the panel on the page are stored on this computer and apply to the next session.
func TestRealGlasses_CheckThePanelOnThePage(t *testing.T) {
	t.Parallel()
	w := newAirSpace(t)
	a := startAgent(w.world, "modern", false)
	page := newGlassesPage(w)
	s, _ := page.visit(a)
	isVisible := func(selector string) string {
		return fmt.Sprintf("document.querySelector(%q)?.checkVisibility()", selector)
	}
	page.await(isVisible("#panel [data-do=begin]"))
	page.do(chromium.Press("#panel [data-do=begin]"))
	page.await(isVisible("#panel form"))
	page.do(chromedp.Click("#panel [name=upright][value=yes]"))
	page.do(chromedp.Click("#panel [name=border][value=yes]"))
	page.do(chromium.Press("#panel [type=submit]"))
	page.await(`document.querySelector("#panel").innerText.includes("This is remembered")`)
	must(t, "the answer is stored", func() bool {
		stored, err := os.ReadFile(filepath.Join(w.dir, "glasses.json"))
		return err == nil && strings.Contains(string(stored), `"panelChecked": true`)
	})
	a.call("closeSession", map[string]any{"sessionId": s.str(t, "sessionId")})
	must(t, "the panels are dark after the session", func() bool { return len(w.panels()) == 0 })
	page.visit(a)
	page.await(`document.querySelector("#panel").innerText.includes("Pictures were right on")`)
}

// If the adapter is killed, and with it the page's server, the page disconnects the glasses and explains what to do.
// The next page continues the same session.
func TestRealGlasses_GetANewPageAfterTheirAdapter(t *testing.T) {
	t.Parallel()
	w := newAirSpace(t)
	a := startAgent(w.world, "modern", false)
	page := newGlassesPage(w)
	s, old := page.visit(a)
	id := s.str(t, "sessionId")
	killProcess(t, w.world, "realdevice")
	must(t, "the page lets go of the arms", func() bool {
		return !w.radio.Connected(w.pair.Left()) && !w.radio.Connected(w.pair.Right())
	})
	page.await(`document.querySelector("main > [data-view=gone]").offsetParent !== null`)
	must(t, "the session has glasses again", func() bool {
		status := a.call("getSessionStatus", map[string]any{"sessionId": id})
		return strings.Contains(fmt.Sprint(status.Structured["session"]), "http://127.0.0.1:")
	})
	again, url := page.visit(a)
	if again.str(t, "sessionId") != id || url == old {
		t.Errorf("got session %s at %s, want %s at another address than before", again.str(t, "sessionId"), url, id)
	}
	app := attach(t, s.str(t, "appEndpoint"), secretIn(t, s.str(t, "appTokenFile")))
	app.send(glasses.TypeDisplayShow, "shown", glasses.Show{Tree: glasses.Node{Type: glasses.NodeText, Text: "shown"}})
	must(t, "both arms show the picture", func() bool { return len(w.panels()) == 2 })
	w.wantPanels(panelPicture(t, a, id))
}

// Users who can list processes see the address that a browser was started with, so the token alone must not be
// enough.
func TestRealGlasses_AnotherUserCannotOpenThePage(t *testing.T) {
	t.Parallel()
	a := startAgent(newWorld(t, "", "SERVICE_NO_AUTO_OPEN=1"), "modern", false)
	s := a.call("connectRealDevice", map[string]any{"deviceModel": "even_g1", "via": "browser", "timeoutSeconds": 5})
	about, _ := s.Structured["glasses"].(map[string]any)
	url, _ := about["url"].(string)
	address, _, isOne := strings.Cut(url, "#")
	if !isOne {
		t.Fatalf("connectRealDevice: got %v, want the address of a page", s.Structured)
	}
	if got := strangerSays(t, "get", address, ""); !strings.HasPrefix(got, "error:") {
		t.Errorf("another user opens the page: got %q, want no answer", got)
	}
	resp, err := http.Get(address) //nolint:gosec,noctx // the service's own page
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("this user: got %s, want the page", resp.Status)
	}
}
