package web

import (
	"testing"

	"github.com/chromedp/chromedp"
)

// noObstacles checks the page at the widths of a desktop, a desktop at 200 % zoom and phones.
func (s *pageTest) noObstacles(name string) {
	s.t.Helper()
	s.see(`document.readyState === "complete"`) // the end of the page arrives last
	s.picture(name)
	for _, width := range []int64{1280, 640, 390, 320} {
		s.do(chromedp.EmulateViewport(width, 844))
		for _, wrong := range eval[[]string](s, stumbles) {
			s.t.Errorf("%s at width %d has obstacles: %s", name, width, wrong)
		}
	}
	s.do(chromedp.EmulateViewport(1280, 800))
}

// oneRowOfTabs checks that the tabs on a phone are in one row each, in which the current one is visible.
func (s *pageTest) oneRowOfTabs() {
	s.t.Helper()
	s.do(chromedp.EmulateViewport(390, 844), chromedp.Reload())
	s.see(`[...document.querySelectorAll(".account-nav, .project-nav")].length === 2 && [...document.querySelectorAll(".account-nav, .project-nav")].every((nav) => {
		const here = nav.querySelector("[aria-current]").getBoundingClientRect();
		return new Set([...nav.querySelectorAll("a")].map((a) => a.offsetTop)).size === 1 && here.left >= 0 && here.right <= innerWidth;
	})`)
	s.do(chromedp.EmulateViewport(1280, 800))
}

// A user filters by version and platform without scripts, changes the range and shows everything again.
func TestAnalytics_FilterWithoutScripts(t *testing.T) {
	for _, scheme := range []string{"light", "dark"} {
		t.Run(scheme, func(t *testing.T) {
			_, site := countsSite(t, counts{})
			s := walkIn(t, site)
			s.scheme(scheme)
			s.withoutScripts()
			s.do(chromedp.Navigate(site.URL + helloPath + "/analytics"))
			s.noObstacles(scheme + "-analytics")
			s.oneRowOfTabs()
			for _, align := range eval[[]string](s, `[...document.querySelectorAll(".numbers td")].map(
				(e) => getComputedStyle(e).textAlign)`) {
				if align != "end" && align != "right" {
					t.Fatalf("a number is aligned %s, want at the end", align)
				}
			}
			s.do(chromedp.SetValue("#version", "1.4.0"), chromedp.SetValue("#platform", "web"),
				chromedp.Click(".filters button"))
			s.see(`document.body.innerText.includes("Only version 1.4.0 on Web")`)
			s.do(chromedp.Click(`.ranges li:last-child a`))
			s.see(`location.search.includes("range=90d")`)
			s.see(`document.body.innerText.includes("Only version 1.4.0 on Web")`)
			s.noObstacles(scheme + "-analytics-filtered")
			s.do(chromedp.Click(`.filters > a`))
			s.see(`location.search === "?range=90d"`)
			s.see(`!document.body.innerText.includes("Only version")`)
		})
	}
}
