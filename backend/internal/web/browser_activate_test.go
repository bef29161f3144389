package web

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// With only a keyboard and without scripts, a user enters the code, creates an account, compares and approves.
func TestActivation_ByKeyboard(t *testing.T) {
	for _, scheme := range []string{"light", "dark"} {
		t.Run(scheme, func(t *testing.T) {
			f := newPeople(t, code)
			site := newSite(t, f)
			s := &pageTest{t: t, ctx: newBrowser(t), site: site}
			s.scheme(scheme)
			s.withoutScripts()
			s.do(chromedp.Navigate(site.URL + "/activate"))
			s.see(`document.activeElement.id === "code"`)
			s.noObstacles(scheme + "-activate-start")
			s.do(chromedp.KeyEvent("wdjb m"), chromedp.KeyEvent(kb.Enter)) // too short: it stays to be completed
			s.see(`document.querySelector("#code-error")?.innerText.includes("eight letters") &&
				document.activeElement.value === "wdjb m"`)
			s.noObstacles(scheme + "-activate-malformed")
			s.do(chromedp.KeyEvent(kb.End), chromedp.KeyEvent("jht"), chromedp.KeyEvent(kb.Enter))
			s.see(`document.querySelector("#user-code")?.textContent === "` + code + `"`)
			if eval[bool](s, `document.querySelector("input[name=code]") !== null`) {
				t.Error("the approval page has an input for the code")
			}
			s.noObstacles(scheme + "-activate")
			s.tabTo("#email")
			s.do(chromedp.KeyEvent("ada@example.org"))
			s.tabTo("#password")
			s.do(chromedp.KeyEvent(password))
			s.tabTo("#accept")
			s.do(chromedp.KeyEvent(" "), chromedp.KeyEvent(kb.Enter))
			s.see(`document.querySelector("#approve")`)
			s.noObstacles(scheme + "-activate-signed-in")
			s.tabTo("#approve")
			s.tabTo("#deny")
			s.do(chromedp.KeyEvent(kb.Tab, chromedp.KeyModifiers(chromedp.ModifierShift)))
			s.see(`document.activeElement.id === "approve"`)
			s.do(chromedp.KeyEvent(kb.Enter))
			s.see(`document.body.innerText.includes("Approved.")`)
			if f.approver(code) != "ada@example.org" {
				t.Errorf("approved by %q, want the person", f.approver(code))
			}
			s.noObstacles(scheme + "-activate-approved")
			s.do(chromedp.Navigate(site.URL + page))
			s.see(`document.body.innerText.includes("already used")`)
			s.noObstacles(scheme + "-activate-gone")
		})
	}
}
