package web

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/service-dev/service/backend/internal/assistant"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/gateway"
	"github.com/service-dev/service/backend/internal/grants"
	"github.com/service-dev/service/test/chromium"
)

// walkIn opens a browser on the overview page, signed in as the account holder.
func walkIn(t *testing.T, site *httptest.Server) *pageTest {
	t.Helper()
	s := &pageTest{t: t, ctx: newBrowser(t), site: site}
	s.signIn()
	s.do(chromedp.Navigate(site.URL + "/account"))
	s.see(`document.querySelector(".account-nav") && document.readyState === "complete"`)
	return s
}

// agentChange makes an agent change the voice.
func agentChange(t *testing.T, h *dashboardWorld, voice string) {
	t.Helper()
	version := h.config().Version
	if _, _, err := h.assistant.Change(context.Background(), adaID, hello,
		assistant.Change{Version: version, Voice: &voice}, audit.Agent("link1")); err != nil {
		t.Fatal(err)
	}
}

// A user changes a grant, creates and revokes a key, and undoes a change made by an agent.
func TestDashboard_WalkThrough(t *testing.T) {
	h := newDashboardWorld(t)
	agentChange(t, h, "harbor")
	site := dashboardSite(t, h)
	s := walkIn(t, site)
	click := func(selector, then string) {
		t.Helper()
		s.do(chromedp.Click(selector))
		s.see(then)
	}

	click(`.account-nav a[href="/account/mcp-access"]`, `location.pathname === "/account/mcp-access"`)
	click(`form[action="/account/mcp-access"] button.quiet:not([name])`, `document.querySelector("#com\\.example\\.hello")`)
	s.do(chromedp.Click(`#com\.example\.hello .level:last-of-type input[value=off]`))
	click(`#com\.example\.hello button`, `document.body.innerText.includes("It applies from")`)
	g, err := h.grants.Of(s.ctx, adaID, hello)
	if err != nil || g.Analytics != grants.Off || g.Credentials != grants.ReadWrite {
		t.Errorf("got grants %+v, want only analytics off", g)
	}

	s.do(chromedp.Navigate(site.URL + "/account/projects/" + hello))
	s.do(chromium.Type("#key-name", "nightly"))
	click(`form[action$="/keys"] button`, `document.querySelector("#key")?.value.startsWith("spk_")`)
	key := eval[string](s, `document.querySelector("#key").value`)
	s.do(chromedp.Navigate(site.URL + "/account/projects/" + hello))
	if html := eval[string](s, `document.documentElement.outerHTML`); strings.Contains(html, key) ||
		!strings.Contains(html, "nightly") {
		t.Error("the new key is shown again or not listed")
	}
	click(`a[href="`+h.newestKey()+`/revoke"]`, `document.querySelector("h1").innerText.includes("nightly")`)
	click(`main button`, `document.body.innerText.includes("The key is revoked")`)

	click(`.account-nav a[href="/account/audit"]`, `location.pathname === "/account/audit"`)
	click(`form[action$="/undo"] button`, `document.body.innerText.includes("Undone.")`)
	if c := h.config(); c.Voice != "ember" {
		t.Errorf("the voice is %s after the undo, want ember", c.Voice)
	}
}

// Responses to forms are accessible as well: a key shown once, invalid values, a conflict.
func TestForms_AreAccessible(t *testing.T) {
	h := newDashboardWorld(t)
	site := dashboardSite(t, h)
	s := walkIn(t, site)
	look := func(name string) {
		t.Helper()
		s.picture(name)
		for _, width := range []int64{1280, 320} {
			s.do(chromedp.EmulateViewport(width, 844))
			for _, wrong := range eval[[]string](s, stumbles) {
				t.Errorf("%s at width %d has obstacles: %s", name, width, wrong)
			}
		}
	}
	open := func(path string) { s.do(chromedp.Navigate(site.URL + helloPath + path)) }
	open("")
	s.do(chromium.Type("#key-name", "nightly"), chromedp.Submit("#key-name"))
	s.see(`document.querySelector("#key")`)
	look("answer-key")
	open("")
	s.do(chromium.Type("#name", strings.Repeat("long", 30)), chromedp.Submit("#name"))
	s.see(`document.querySelector("#name-error")`)
	look("answer-name")
	open("/assistant")
	agentChange(t, h, "harbor")
	s.do(chromedp.Click("#sounds"), chromedp.Submit("#sounds"))
	s.see(`document.querySelector("#meanwhile")`)
	look("answer-conflict")
	open("/credentials")
	s.do(chromedp.Click(`[aria-labelledby="provider-openai"] summary`)) // no model uses the key, so the form is folded
	s.do(chromium.Type("#value-openai", "wrong"), chromedp.Submit("#value-openai"))
	s.see(`document.querySelector("#value-openai-error")`)
	look("answer-credential")
	open("/connection-page")                        // the last page, because leaving it asks first
	s.do(chromium.Type("#toggle-id-2", "not so\r")) // Enter sends the form
	s.see(`document.querySelector("[aria-invalid]")`)
	look("answer-page")
}

// dashboardPages are checked automatically and saved as screenshots for review.
var dashboardPages = []struct{ name, path string }{
	{"overview", "/account"}, {"sessions", sessionsPath}, {"projects", "/account/projects"},
	{"projects-none", "/account/projects?q=nothing"}, {"project-sessions", helloPath + "/sessions"}, {"project", "/account/projects/" + hello},
	{"assistant", "/account/projects/" + hello + "/assistant"},
	{"credentials", "/account/projects/" + hello + "/credentials"},
	{"gateway", "/account/projects/" + hello + "/gateway?range=30d"}, {"credit", "/account/credit"},
	{"connection-page", "/account/projects/" + hello + "/connection-page"}, {"access", "/account/mcp-access"},
	{"access-project", accessPath(hello)}, {"access-all", "/account/mcp-access/all?level=off"},
	{"audit", "/account/audit"},
	{"delete", "/account/projects/" + hello + "/delete"}, {"revoke", "/account/links/link1/revoke"},
	{"session-close", sessionsPath + "/ses_one/close"}, {"home", "/"},
}

func TestDashboard_IsAccessible(t *testing.T) {
	for _, scheme := range []string{"light", "dark"} {
		t.Run(scheme, func(t *testing.T) {
			h := newDashboardWorld(t)
			agentChange(t, h, "harbor")
			h.setOpenAIKey()
			h.spend(60)
			h.spendOnModels()
			h.allowServers()
			h.addServers(
				gateway.LocalServer{ID: "ollama", BaseURL: "http://localhost:11434/v1", Models: []string{"llama3.2:1b"},
					Keyed: true, Checked: then},
				gateway.LocalServer{ID: "vllm", BaseURL: "http://192.168.1.20:8000/v1", Checked: then,
					Problem: "it does not answer: start it, then check again"})
			site := dashboardSite(t, h)
			s := walkIn(t, site)
			s.scheme(scheme)
			for _, p := range dashboardPages {
				s.do(chromedp.Navigate(site.URL + p.path))
				s.picture(scheme + "-" + p.name)
				for _, width := range []int64{1280, 390, 320} {
					s.do(chromedp.EmulateViewport(width, 844))
					for _, wrong := range eval[[]string](s, stumbles) {
						t.Errorf("%s at width %d has obstacles: %s", p.name, width, wrong)
					}
				}
			}
		})
	}
}
