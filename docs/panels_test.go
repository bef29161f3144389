package docs_test

import (
	"image"
	"slices"
	"strings"
	"testing"

	"github.com/service-dev/service/docs"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/render"
)

// TestCaptions_StandAtTheBottom draws the documented recipe for captions on every panel. Nothing may be clipped, and
// the last line must be in the lowest third, due to the empty column alone. Every model must fit as many lines as the
// page states.
func TestCaptions_StandAtTheBottom(t *testing.T) {
	all := blocks()
	at := slices.IndexFunc(all, func(b block) bool { return b.page == "panels" && strings.Contains(b.text, `"grow":1`) })
	if at < 0 {
		t.Fatal("the page no longer contains the recipe")
	}
	f, err := glasses.Parse([]byte(strings.TrimSpace(all[at].text)))
	if err != nil {
		t.Fatal(err)
	}
	show, err := glasses.ParseShow(f.Payload)
	if err != nil {
		t.Fatal(err)
	}
	captions, above := show.Tree, show.Tree
	line := captions.Children[len(captions.Children)-1]
	above.Children = captions.Children[1:]
	three := captions
	three.Children = []glasses.Node{captions.Children[0], line, line, line}
	for _, m := range glasses.Models() {
		if m.Panel == nil {
			continue
		}
		for name, tree := range map[string]glasses.Node{"the recipe": captions, "three lines": three} {
			if found := render.Fit(m, render.Show(m, glasses.View{}, &tree)); len(found) > 0 {
				t.Errorf("%s: %s does not fit: %+v", m.ID, name, found)
			}
		}
		if low := lowest(render.Draw(m, render.Show(m, glasses.View{}, &captions))); low < 67 {
			t.Errorf("%s: the last line ends at %d %% of the panel, want at least 67 %%", m.ID, low)
		}
		if low := lowest(render.Draw(m, render.Show(m, glasses.View{}, &above))); low > 67 {
			t.Errorf("%s: without the empty column the last line ends at %d %%, want at most 67 %%", m.ID, low)
		}
	}
}

// lowest returns the position of the lowest pixel that is not black, in percent of the height.
func lowest(img *image.NRGBA) int {
	b := img.Bounds()
	for y := b.Max.Y - 1; y >= b.Min.Y; y-- {
		for x := b.Min.X; x < b.Max.X; x++ {
			if c := img.NRGBAAt(x, y); c.R|c.G|c.B != 0 {
				return 100 * (y + 1 - b.Min.Y) / b.Dy()
			}
		}
	}
	return 0
}

func TestModels_SayWhatTheirOwnFontsCanDo(t *testing.T) {
	page, ok := docs.Find("device-models")
	if !ok {
		t.Fatal("the page does not exist")
	}
	for _, m := range glasses.Models() {
		_, section, _ := strings.Cut(page.Markdown, "## "+m.Name+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		said := strings.Contains(section, "- Fonts of the real glasses: ") && !strings.Contains(section, "glasses: .\n")
		if said != (m.Panel != nil) {
			t.Errorf("%s: %s", m.ID, section)
		}
	}
}
