package render_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/render"
)

func TestPages_CountsWhatTheWearerScrolls(t *testing.T) {
	lines := func(overflow string, n int) glasses.View {
		return glasses.View{Tree: &glasses.Node{Type: glasses.NodeColumn, Overflow: overflow, Children: []glasses.Node{
			{Type: glasses.NodeText, Text: strings.Repeat("line\n", n-1) + "line"}}}}
	}
	for _, m := range panels() {
		fit := 0
		for _, s := range render.TextSizes(m) {
			if s.Style == glasses.StyleBody {
				fit = s.Lines
			}
		}
		for _, overflow := range []string{glasses.OverflowScroll, glasses.OverflowPaginate} {
			for n, want := range map[int]int{1: 1, fit: 1, fit + 1: 2, 2 * fit: 2, 3 * fit: 3} {
				if got := render.Pages(m, lines(overflow, n)); got != want {
					t.Errorf("%s: %d lines with %s have %d pages, want %d", m.ID, n, overflow, got, want)
				}
			}
		}
		if got := render.Pages(m, lines("", 9*fit)); got != 1 {
			t.Errorf("%s: a tree that does not scroll has %d pages", m.ID, got)
		}
	}
	if got := render.Pages(glasses.DeviceModel{}, glasses.View{}); got != 1 {
		t.Errorf("without a panel: got %d pages", got)
	}
}

func TestLostColours(t *testing.T) {
	text := func(colour string) glasses.Node {
		return glasses.Node{Type: glasses.NodeText, Text: "text", Colour: colour}
	}
	tree := &glasses.Node{Type: glasses.NodeColumn, Children: []glasses.Node{text("#be2633"), text(""), text("#00ff00"),
		{Type: glasses.NodeList, Children: []glasses.Node{text("#be2633"), text("#123456")}}}}
	for model, want := range map[string][]string{"rayban_display": nil, "brilliant_frame": {"#00ff00", "#123456"},
		"even_g1": {"#be2633", "#123456"}, "system_audio": nil} {
		m, _ := glasses.Model(model)
		if got := render.LostColours(m, tree); !slices.Equal(got, want) {
			t.Errorf("%s: got the lost colours %v, want %v", model, got, want)
		}
	}
}
