package web

import (
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// On a return visit, the browser requests no module from the server: the modules' URLs contain their versions.
func TestModules_AreNotRevalidated(t *testing.T) {
	s := newPageTest(t, "rayban_display")
	s.see(`document.querySelector("#simulator").dataset.live === "yes"`)
	s.do(chromedp.Reload())
	s.see(`document.querySelector("#simulator").dataset.live === "yes"`)
	type load struct {
		Name string
		Size int // bytes received over the network
	}
	modules := 0
	for _, l := range eval[[]load](s, `performance.getEntriesByType("resource")
		.filter((e) => e.name.includes(".js")).map((e) => ({ name: e.name, size: e.transferSize }))`) {
		switch {
		case strings.HasSuffix(l.Name, "/assets/clock.js"): // a worker, loaded later by its plain name
		case l.Size > 0:
			t.Errorf("%s was loaded again, %d bytes", l.Name, l.Size)
		default:
			modules++
		}
	}
	if modules < 10 {
		t.Errorf("the page has %d modules, want 10 or more: is the page the right one?", modules)
	}
}

// A page names each of its modules in its head, with the same version as the import.
func TestModules_ArePreloaded(t *testing.T) {
	set, err := findAssets()
	if err != nil {
		t.Fatal(err)
	}
	preloaded := set.modules("simulator.js")
	for name, a := range set {
		if a.kind != scriptType {
			continue
		}
		for _, imported := range a.imports() {
			path := strings.TrimPrefix(set[imported].url(), "/assets/")
			if !strings.Contains(string(a.body.bytes()), `from "./`+path+`"`) {
				t.Errorf("%s does not import %s", name, path)
			}
		}
	}
	for _, url := range preloaded {
		script, _, _ := strings.Cut(strings.TrimPrefix(url, "/assets/"), "?")
		for _, imported := range set[script].imports() {
			if !slices.Contains(preloaded, set[imported].url()) {
				t.Errorf("%s is not preloaded, though %s imports it", imported, script)
			}
		}
	}
	if len(preloaded) < 10 {
		t.Errorf("%d modules are preloaded, want 10 or more", len(preloaded))
	}
}
