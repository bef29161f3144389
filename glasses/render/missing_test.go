package render_test

import (
	"testing"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/render"
)

// These are private-use characters, so no font has them.
func TestInspect_ATextWithMissingCharactersIsNotReadInFull(t *testing.T) {
	m, _ := glasses.Model("rayban_display")
	for _, c := range []struct{ text, visible, whole, missing string }{
		{"Hello", render.VisibleFull, "Hello", ""},
		{"Hello \ue001\ue002\ue001", render.VisiblePartial, "", "U+E001, U+E002"},
		{"\ue001", render.VisibleNone, "", "U+E001"},
		{"first line\n\ue001 second", render.VisiblePartial, "first line", "U+E001"},
		{"soft\u00adhyphen", render.VisibleFull, "soft\u00adhyphen", ""},
		{"\ue001\ue002\ue003\ue004\ue005\ue006\ue007\ue008\ue009", render.VisibleNone, "",
			"U+E001, U+E002, U+E003, U+E004, U+E005, U+E006, U+E007, U+E008 and others"},
	} {
		tree := column(text(c.text))
		got := render.Inspect(m, render.Clamp(m, glasses.View{Tree: &tree})).Texts[0]
		if got.Visible != c.visible || got.Whole != c.whole || got.Missing != c.missing {
			t.Errorf("%q: got visible %q, whole %q, missing %q", c.text, got.Visible, got.Whole, got.Missing)
		}
	}
}

func TestFit_NamesMissingCharacters(t *testing.T) {
	m, _ := glasses.Model("rayban_display")
	tree := column(text("fits"), text("no \ue001\u1200"))
	found := render.Fit(m, render.Clamp(m, glasses.View{Tree: &tree}))
	want := glasses.Finding{Kind: glasses.FindingMissingGlyph, Path: "tree.children[1]",
		Text: "no \ue001\u1200", Missing: "U+E001, \u1200 U+1200 ETHIOPIC SYLLABLE HA"}
	if len(found) != 1 || found[0] != want {
		t.Errorf("got findings %+v, want only %+v", found, want)
	}
}
