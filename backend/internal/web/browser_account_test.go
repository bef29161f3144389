package web

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/grants"
	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/test/chromium"
)

// clickFor clicks, and waits for a condition.
func (s *pageTest) clickFor(selector, then string) {
	s.t.Helper()
	s.do(chromedp.Click(selector))
	s.see(then)
}

// tabTo presses Tab until a matching element has the focus. The focus must be visible at every stop.
func (s *pageTest) tabTo(selector string) {
	s.t.Helper()
	for range 80 {
		s.do(chromedp.KeyEvent(kb.Tab))
		if hidden := eval[string](s, `(() => {
			const at = document.activeElement, style = getComputedStyle(at), box = at.getBoundingClientRect();
			const isVisible = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2 && box.width > 0 &&
				box.bottom > 0 && box.top < innerHeight;
			return isVisible ? "" : at.outerHTML.slice(0, 200);
		})()`); hidden != "" {
			s.t.Errorf("the focus is not visible on %s", hidden)
		}
		if eval[bool](s, fmt.Sprintf(`document.activeElement.matches(%q)`, selector)) {
			return
		}
	}
	s.t.Fatalf("no element %s can be reached with Tab", selector)
}

// A user finds a session by its picture, and closes it, without scripts.
func TestSessions_WithoutScript(t *testing.T) {
	h := newDashboardWorld(t)
	site := dashboardSite(t, h)
	s := walkIn(t, site)
	s.withoutScripts()
	s.clickFor(`.account-nav a[href="/account/sessions"]`, `location.pathname === "/account/sessions"`)
	s.see(`(() => { const i = document.querySelector(".screen img"); return i.complete && i.naturalWidth > 0; })()`)
	if n := eval[int](s, `document.querySelectorAll(".session").length`); n != 2 {
		t.Errorf("%d sessions are shown, want 2", n)
	}
	// The picture stays inside its card.
	if out := eval[bool](s, `(() => { const a = document.querySelector(".screen").getBoundingClientRect(), b = document.querySelector(".screen img").getBoundingClientRect(); return b.bottom > a.bottom || b.right > a.right; })()`); out {
		t.Error("the picture is larger than its place")
	}
	s.clickFor(`a[href^="/account/sessions/ses_one/close"]`,
		`document.querySelector("h1").innerText === "Close the session of Hello on Ray-Ban Display?"`)
	s.clickFor(`form[action="/account/sessions/ses_one/close"] button`,
		`document.querySelector("[role=status]")?.innerText.includes("The session is closed")`)
	if text := s.text("main"); strings.Contains(text, "hello-glasses") || !strings.Contains(text, "Ray-Ban Meta") {
		t.Errorf("the closed session is listed, or the other is not:\n%s", text)
	}
}

// The picture changes with the app's output.
func TestSessions_PictureIsCurrent(t *testing.T) {
	h := newDashboardWorld(t)
	site := dashboardSite(t, h)
	s := walkIn(t, site)
	look := func() string {
		s.open(sessionsPath)
		s.see(`document.querySelector(".screen img").complete && document.querySelector(".screen img").naturalWidth > 0`)
		png, err := chromium.Run(s.ctx, chromedp.Screenshot(".screen img"))
		if err != nil {
			t.Fatal(err)
		}
		return string(png)
	}
	before := look()
	if look() != before {
		t.Error("the picture changes by itself")
	}
	h.show("ses_one", `{"tree":{"type":"text","text":"Another text","style":"large"}}`)
	if look() == before {
		t.Error("the picture is the same after the app showed another tree")
	}
}

// The steps of the overview tick themselves when the user returns.
func TestOverview_TicksInTheBrowser(t *testing.T) {
	h := newDashboardWorld(t)
	h.exec("DELETE FROM sessions")
	site := dashboardSite(t, h)
	s := walkIn(t, site)
	done := func() string {
		s.open("/account")
		return eval[string](s, `[...document.querySelectorAll(".steps .done strong")].map((e) => e.innerText).join(", ")`)
	}
	if got := done(); got != "Link your coding agent, Create your first project" {
		t.Errorf("done are %q, want the link and the project", got)
	}
	// Open steps show their number, without a ring that looks like a radio button.
	if got := eval[string](s, `[...document.querySelectorAll(".steps li:not(.done) .tick")].map((e) =>
		getComputedStyle(e, "::before").content + " " + getComputedStyle(e).borderStyle).join(", ")`); got !=
		"counter(step) none, counter(step) none" {
		t.Errorf("the steps that are left have %q, want their number without a ring", got)
	}
	h.addSession("ses_one", "even_g1", "", 0)
	if got := done(); !strings.HasSuffix(got, "Open a simulator session") {
		t.Errorf("done are %q, want the session too", got)
	}
	h.append(sessions.Row{SessionID: "ses_one", Event: glasses.Event{Type: glasses.RowAppAttached, ID: "a", At: 1}})
	if done(); strings.Contains(s.text("main"), "First steps") {
		t.Error("the steps stay after all are done")
	}
}

// The grants page is usable with only the keyboard: change the default, set a project's own level, return to the
// default.
func TestAccess_ByKeyboard(t *testing.T) {
	h := newDashboardWorld(t)
	site := dashboardSite(t, h)
	s := walkIn(t, site)
	s.open("/account/mcp-access")
	press := func(key string) { t.Helper(); s.do(chromedp.KeyEvent(key)) }
	s.tabTo(`input[name="assistant.voice"]`)
	press(kb.ArrowLeft) // from Read + Write to Read
	if name := eval[string](s, `document.activeElement.value`); name != "read" {
		t.Errorf("the arrow selects %q, want read", name)
	}
	if eval[string](s, `getComputedStyle(document.activeElement.nextElementSibling).outlineStyle`) != "solid" {
		t.Error("the focus is not visible")
	}
	s.tabTo(`form[action$="/default"] button`)
	press(kb.Enter)
	s.see(`document.querySelector("[role=status]")?.innerText.includes("It applies from")`)
	if usual, _ := h.levels(); usual.Assistant[grants.Voice] != grants.Read {
		t.Errorf("got the default %+v, want the voice to be read only", usual)
	}
	s.tabTo("#project")
	press("H") // selects Hello
	s.tabTo(`form:has(#project) button`)
	press(kb.Enter)
	s.see(`document.querySelector("#com\\.example\\.hello")`)
	s.tabTo(`#com\.example\.hello input[name=analytics]`)
	press(kb.ArrowLeft)
	s.tabTo(`#com\.example\.hello button`)
	press(kb.Enter)
	s.see(`document.querySelector(".badge.on")?.innerText === "has its own levels"`)
	s.tabTo(`button[name=follow]`)
	press(kb.Enter)
	s.see(`document.body.innerText.includes("follows your default again")`)
	if _, own := h.levels(); len(own) != 0 {
		t.Errorf("got exceptions %v, want none", own)
	}
	s.tabTo("#level")
	press("O") // Off
	s.tabTo(`form[action$="/all"] button`)
	press(kb.Enter)
	s.see(`document.querySelector("h1").innerText === "Set all projects to Off?"`)
	s.tabTo("main button")
	press(kb.Enter)
	s.see(`document.querySelector("[role=status]")?.innerText.includes("the same access")`)
	if usual, _ := h.levels(); usual.Analytics != grants.Off {
		t.Error("the bulk change was not made")
	}
}

func TestProjects_SearchInTheBrowser(t *testing.T) {
	h := newDashboardWorld(t)
	for i := range 120 {
		h.addProject(fmt.Sprintf("com.example.bulk%03d", i), fmt.Sprintf("Bulk %03d", i), time.Time{})
	}
	site := dashboardSite(t, h)
	s := walkIn(t, site)
	s.open("/account/projects")
	s.clickFor(`.pages a[rel=next]`, `document.querySelector(".pages").innerText.includes("101–122 of 122")`)
	s.do(chromium.Type("#q", "bulk 11\r"))
	s.see(`document.querySelectorAll(".rows tbody tr").length === 11`) // 011 and 110 to 119
	if q := eval[string](s, `document.querySelector("#q").value`); q != "bulk 11" {
		t.Errorf("the field shows %q, want the search", q)
	}
	// Numbers are right-aligned below their headings.
	if bad := eval[bool](s, `(() => { const right = (e) => { const r = document.createRange(); r.selectNodeContents(e); return r.getBoundingClientRect().right; }; return Math.abs(right(document.querySelector("td.number")) - right(document.querySelector("th.number"))) > 1; })()`); bad {
		t.Error("the numbers are not aligned with their head")
	}
	s.clickFor(".clear", `location.search === "" && document.querySelectorAll(".rows tbody tr").length === 100`)
}

func TestActivity_FilterInTheBrowser(t *testing.T) {
	h := newDashboardWorld(t)
	agentChange(t, h, "harbor")
	h.note(audit.Person(), "key.minted", hello, "key nightly")
	site := dashboardSite(t, h)
	s := walkIn(t, site)
	s.open("/account/audit")
	rows := `[...document.querySelectorAll(".rows tbody th strong")].map((e) => e.innerText).join()`
	s.do(chromedp.SetValue("#who", "agent"))
	s.clickFor(".filters button", rows+` === "Assistant changed"`)
	if text := s.text(".changes"); !strings.Contains(text, "ember") || !strings.Contains(text, "harbor") {
		t.Errorf("the change shows %q, want the voice before and after", text)
	}
	s.do(chromedp.SetValue("#who", "person"), chromedp.SetValue("#project", hello), chromedp.SetValue("#to", "2026-11-20"))
	s.clickFor(".filters button", rows+` === "Project key made"`)
	s.clickFor(".clear", `location.search === ""`)
}

// A key is copied with a button that only the script adds. Without scripts, the text can be selected.
func TestCopy_KeysAndCommands(t *testing.T) {
	h := newDashboardWorld(t)
	site := dashboardSite(t, h)
	s := walkIn(t, site)
	s.open(helloPath)
	s.do(chromium.Type("#key-name", "nightly"), chromedp.Submit("#key-name"))
	s.see(`document.querySelector(".copyable #key")`)
	s.see(`document.activeElement.id === "key"`)
	s.do(chromedp.Evaluate[chromedp.Void](`navigator.clipboard.writeText = async (text) => { window.copied = text; }`))
	s.clickFor(".copy", `document.querySelector(".copy").innerText === "Copied"`)
	key := eval[string](s, `document.querySelector("#key").value`)
	if got := eval[string](s, `window.copied`); got == "" || got != key {
		t.Errorf("copied %q, want the key", got)
	}
	s.open("/")
	s.see(`document.querySelectorAll(".commands .copy").length === 3`)
	s.do(chromedp.Evaluate[chromedp.Void](`navigator.clipboard.writeText = async (text) => { throw new Error("denied"); }`))
	s.clickFor(".commands li:nth-child(2) .copy", `getSelection().toString().trim() === "servicectl login"`)
	s.withoutScripts()
	s.open("/")
	if eval[bool](s, `!!document.querySelector(".copy")`) {
		t.Error("without script there is a button that does nothing")
	}
}

// Times are in the reader's zone, with UTC in the tooltip. Without scripts they are in UTC.
func TestTimes_AreLocal(t *testing.T) {
	h := newDashboardWorld(t)
	site := dashboardSite(t, h)
	s := walkIn(t, site)
	s.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetTimezoneOverride,
			emulation.SetTimezoneOverrideParams{TimezoneID: "Asia/Tokyo"})
		return err
	}))
	const shown = `(() => { const e = document.querySelector(".rows time"); return e.innerText + " | " + e.title; })()`
	s.open("/account/projects")
	s.see(shown + ` === "20 Nov 2026, 19:30 | 20 Nov 2026, 10:30 UTC"`)
	s.withoutScripts()
	s.open("/account/projects")
	if got := eval[string](s, shown); got != "20 Nov 2026, 10:30 UTC | " {
		t.Errorf("without script the page shows %q, want UTC", got)
	}
}

// In light mode a field that can be edited is white and has a clear border; only a read-only field is grey.
func TestFields_LookEditable(t *testing.T) {
	site := dashboardSite(t, newDashboardWorld(t))
	s := walkIn(t, site)
	s.scheme("light")
	s.open(helloPath)
	for _, field := range []string{"#key-name", "#name", "#into"} {
		if got := eval[string](s, fmt.Sprintf(`getComputedStyle(document.querySelector(%q)).backgroundColor`, field)); got !=
			"rgb(255, 255, 255)" {
			t.Errorf("%s has the background %s, want white", field, got)
		}
	}
	s.do(chromium.Type("#key-name", "nightly"), chromedp.Submit("#key-name"))
	s.see(`document.querySelector("#key")`)
	if got := eval[string](s, `getComputedStyle(document.querySelector("#key")).backgroundColor`); got == "rgb(255, 255, 255)" {
		t.Error("a read-only field looks editable")
	}
}

// The start page shows the product: the picture loads, and does not make the page wider than a phone.
func TestHome_InTheBrowser(t *testing.T) {
	s, _ := newSettingsPageTest(t)
	for _, width := range []int64{1280, 390} {
		s.do(chromedp.EmulateViewport(width, 844))
		s.open("/")
		s.see(`document.querySelector(".worn img").naturalWidth === 600`)
		if eval[bool](s, `document.documentElement.scrollWidth > innerWidth`) {
			t.Errorf("the page is wider than %d pixels", width)
		}
	}
}

// Long names wrap instead of making a page wider than its window, in both themes and on a phone.
func TestDashboard_LongNamesFit(t *testing.T) {
	h := newDashboardWorld(t)
	long := "com.example." + strings.Repeat("averylongsegment", 8)
	h.addProject(long, strings.Repeat("Donaudampfschiff", 5), then)
	h.exec("UPDATE sessions SET app_id = $1 WHERE account_id = $2", long, adaID)
	h.live["ses_one"] = sessions.Live{Apps: []glasses.AppInfo{{Name: strings.Repeat("app", 30)}}}
	own := grants.Default()
	own.Analytics, own.Credentials = grants.Off, grants.Off
	h.setLevels(long, own)
	h.note(agentActor, "project.changed", long, "name: "+strings.Repeat("x", 80)+" -> "+strings.Repeat("y", 80))
	site := dashboardSite(t, h)
	s := walkIn(t, site)
	for name, path := range map[string]string{"overview": "/account", "sessions": sessionsPath, "projects": "/account/projects",
		"project": projectPath(long), "access": accessPath(long), "audit": "/account/audit"} {
		s.do(chromedp.Navigate(site.URL + path))
		s.picture("long-" + name)
		for _, width := range []int64{1280, 640, 390, 320} {
			s.do(chromedp.EmulateViewport(width, 844))
			for _, wrong := range eval[[]string](s, stumbles) {
				t.Errorf("%s at width %d has obstacles: %s", name, width, wrong)
			}
		}
	}
}
