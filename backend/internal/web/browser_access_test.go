package web

import (
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/service-dev/service/glasses"
)

// stumbles lists obstacles for users with a screen reader, a keyboard or low vision: controls without a name, repeated
// IDs, targets that are too small, and text with less contrast than WCAG 2.2 AA requires (disabled controls are
// exempt).
const stumbles = `(() => {
	const wrong = [];
	const ids = new Set();
	for (const e of document.querySelectorAll("[id]")) { if (ids.has(e.id)) wrong.push("id twice: " + e.id); ids.add(e.id); }
	for (const e of document.querySelectorAll("input:not([type=hidden]), select, button, summary, [role=application], video, [role=img]")) {
		const name = e.ariaLabel || e.labels?.[0]?.textContent || (e.matches("button, summary") ? e.textContent :
			document.getElementById(e.getAttribute("aria-labelledby")?.split(" ")[0])?.textContent);
		if (!name?.trim()) wrong.push("no name: " + e.outerHTML.slice(0, 80));
		const box = e.getBoundingClientRect();
		if (box.width && e.matches("button, select, summary") && box.height < 24) wrong.push("small: " + e.outerHTML.slice(0, 80));
	}
	for (const e of document.querySelectorAll("[aria-labelledby], [aria-describedby]"))
		for (const id of [e.getAttribute("aria-labelledby"), e.getAttribute("aria-describedby")].join(" ").split(" ")) if (id && !ids.has(id)) wrong.push("no such id: " + id);
	const parse = (c) => (c.match(/[\d.]+/g) ?? []).map(Number);
	const light = ([r, g, b]) => { const f = [r, g, b].map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * f[0] + 0.7152 * f[1] + 0.0722 * f[2]; };
	const behind = (e) => {
		for (; e; e = e.parentElement) {
			if (e.matches(".stage")) return [35, 48, 47]; // the lightest colour of its gradient
			const c = parse(getComputedStyle(e).backgroundColor);
			if (c.length === 3 || c[3] === 1) return c;
		}
		return [255, 255, 255];
	};
	for (const e of document.querySelectorAll("main *")) {
		const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
		if (!own || e.closest(".sr, :disabled, fieldset:disabled, [hidden], option, noscript") || !e.getClientRects().length) continue;
		const style = getComputedStyle(e);
		const [a, b] = [light(parse(style.color)), light(behind(e))];
		const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
		const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.6 && style.fontWeight >= 700);
		if (ratio < (large ? 3 : 4.5)) wrong.push(ratio.toFixed(2) + ": " + e.textContent.trim().slice(0, 40));
	}
	if (document.documentElement.scrollWidth > innerWidth) 
		wrong.push("wider than the window: " + [...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > innerWidth && !e.closest(".sr, pre, .rows")).map((e) => e.tagName + "." + e.className + "#" + e.id).join(" "));
	return wrong;
})()`

func TestSimulatorPage_IsAccessible(t *testing.T) {
	for _, scheme := range []string{"light", "dark"} {
		t.Run(scheme, func(t *testing.T) {
			s := newPageTest(t, "rayban_display")
			s.scheme(scheme)
			s.showMenu()
			s.result(s.command(glasses.TypePhrasesAnnounce, glasses.Announce{Phrases: []string{"next page", "stop"}}))
			s.result(s.command(glasses.TypeCameraPhoto, struct{}{})) // refused, and the page reports it
			s.do(chromedp.Click("#tab-glasses"), chromedp.Click("#worn"), chromedp.Click(".filter"),
				chromedp.Evaluate[chromedp.Void](`document.querySelectorAll("details").forEach((d) => { d.open = true; })`))
			for _, width := range []int64{1280, 390, 320} {
				s.do(chromedp.EmulateViewport(width, 844))
				for _, tab := range []string{"use", "glasses", "senses", "faults", "session", "log"} {
					s.do(chromedp.Evaluate[chromedp.Void](`document.querySelector("#tab-` + tab + `").click()`))
					for _, wrong := range eval[[]string](s, stumbles) {
						t.Errorf("at width %d, tab %s, the page has obstacles: %s", width, tab, wrong)
					}
				}
			}
		})
	}
}
