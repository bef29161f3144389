//go:build unix

package e2e

import (
	"context"
	"testing"

	"github.com/chromedp/chromedp"
)

// pageStates lists states of pages after a user action. do runs in the page at path, and then is a condition that
// becomes true.
var pageStates = []struct{ name, path, do, then string }{
	{"analytics-filtered", "/analytics?range=7d", `{
		document.querySelector("#version").value = "1.1.0";
		document.querySelector("#platform").value = "web";
		document.querySelector(".filters").requestSubmit();
	}`, `document.querySelector("main").innerText.includes("Only version 1.1.0 on Web")`},
	{"analytics-nothing", "/analytics?version=9.9", ``, `document.querySelector("#none")`},
	{"analytics-numbers", "/analytics", `document.querySelectorAll("details").forEach((d) => { d.open = true; })`,
		`document.querySelector("details[open]")`},
	{"connection-page-errors", "/connection-page", `{
		document.querySelector("#title").value = "";
		document.querySelector("#accent").value = "red";
		document.querySelector("#phrase-1").value = "x".repeat(90);
		document.querySelector("#supportUrl").value = "nowhere";
		document.querySelector("#page-form").requestSubmit();
	}`, `document.activeElement.id === "summary" && document.querySelectorAll("[aria-invalid]").length === 4`},
	{"connection-page-rows", "/connection-page", `document.querySelector("[data-add]").click()`,
		`document.activeElement.id.startsWith("phrase-")`},
	{"assistant-refused", "/assistant", `{
		document.querySelector("#realtimeModel-realtime-swift").checked = true;
		document.querySelector("#voice-slate").checked = true;
		document.querySelector("form.settings").requestSubmit();
	}`, `document.activeElement.id === "summary" && document.querySelector("#voice-error")`},
	{"assistant-voices", "/assistant", `{
		document.querySelector("#voice-willow").click();
		document.querySelector("#realtimeModel-realtime-swift").click();
	}`, `document.querySelector("#voice-willow-reason") && document.querySelector("#voice-status").textContent`},
	{"credentials-refused", "/credentials", `{
		document.querySelector("#value-anthropic").value = "wrong";
		document.querySelector("#value-anthropic").form.requestSubmit();
	}`, `document.activeElement.id === "summary"`},
}

// checkStates checks pages of a project in these states, and the pages of a code that was never issued.
func checkStates(t *testing.T, browser context.Context, axe, site, project string) {
	t.Helper()
	for _, s := range pageStates {
		run(t, browser, "open "+s.name, chromedp.Navigate(project+s.path), until(`document.readyState === "complete"`))
		evaluate[bool](t, browser, s.do+"; true")
		run(t, browser, "bring about "+s.name, until(s.then))
		checkPage(t, browser, axe, s.name, "", maxPage)
	}
	checkPage(t, browser, axe, "activate-start", site+"/activate", maxPage)
	checkPage(t, browser, axe, "activate-malformed", site+"/activate?code=ABCD", maxPage)
	checkPage(t, browser, axe, "activate-gone", site+"/activate?code=LLLL-LLLL", maxPage)
}
