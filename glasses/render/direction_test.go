package render

import (
	"image"
	"testing"

	"github.com/service-dev/service/glasses"
)

// Each row has an icon and a text. The icon is on the left if the row runs from left to right.
func TestDirection_MirrorsRows(t *testing.T) {
	m, _ := glasses.Model("rayban_display")
	icon := glasses.Node{Type: glasses.NodeIcon, Icon: "sun"}
	row := func(direction, text, own string) glasses.Node {
		return glasses.Node{Type: glasses.NodeRow, Direction: direction,
			Children: []glasses.Node{icon, {Type: glasses.NodeText, Text: text, Direction: own}}}
	}
	for _, c := range []struct {
		name     string
		root     string
		row      glasses.Node
		mirrored bool // the row
		right    bool // the text begins at the right
	}{
		{"Latin", "", row("", "Sun", ""), false, false},
		{"Arabic", "", row("", "شمس", ""), true, true},
		{"Latin in a mirrored page", "rtl", row("", "Sun", ""), true, false},
		{"a number in a mirrored page", "rtl", row("", "22", ""), true, true},
		{"the row decides", "rtl", row("ltr", "שמש", ""), false, true},
		{"the row is automatic", "rtl", row("auto", "Sun", ""), false, false},
		{"the text decides", "", row("", "Sun", "rtl"), false, true},
	} {
		tree := glasses.Node{Type: glasses.NodeColumn, Direction: c.root, Children: []glasses.Node{c.row}}
		s, _ := laidOut(m, Clamp(m, glasses.View{Tree: &tree}))
		b := s.root.kids[0]
		if got := b.kids[0].x > b.kids[1].x; got != c.mirrored {
			t.Errorf("%s: mirrored is %v, want %v", c.name, got, c.mirrored)
		}
		if got := b.kids[1].text.lines[0].rtl; got != c.right {
			t.Errorf("%s: the text begins at the right is %v, want %v", c.name, got, c.right)
		}
	}
}

// A right-to-left page without letters is the mirror image of the same left-to-right page.
func TestDirection_IsAMirrorImage(t *testing.T) {
	var bars []glasses.Node
	for i := range 12 {
		bars = append(bars, glasses.Node{Type: glasses.NodeProgress, Value: 8 * i, Width: 40 + 9*i})
	}
	for _, overflow := range []string{glasses.OverflowScroll, glasses.OverflowPaginate} {
		for _, align := range []string{"", glasses.AlignCenter, glasses.AlignEnd} {
			tree := glasses.Node{Type: glasses.NodeColumn, Children: []glasses.Node{
				{Type: glasses.NodeRow, Gap: 7, Children: []glasses.Node{{Type: glasses.NodeProgress, Value: 30, Width: 61},
					{Type: glasses.NodeProgress, Value: 60, Grow: 1}}},
				{Type: glasses.NodeList, Gap: 9, Overflow: overflow, Align: align, Children: bars},
				{Type: glasses.NodeColumn, Gap: 9, Padding: 5, Overflow: overflow, Align: align, Children: bars},
			}}
			for _, m := range glasses.Models() {
				if m.Panel == nil {
					continue
				}
				want := Draw(m, Clamp(m, glasses.View{Tree: &tree}))
				mirrored := tree
				mirrored.Direction = glasses.DirectionRTL
				got := Draw(m, Clamp(m, glasses.View{Tree: &mirrored}))
				sc, _ := newScreen(m)
				if p := differsFromMirror(want, got, sc.area); p != nil {
					t.Errorf("%s, %s, %q: the picture differs from the mirror image at %v", m.ID, overflow, align, *p)
				}
			}
		}
	}
}

func differsFromMirror(a, b *image.NRGBA, area image.Rectangle) *image.Point {
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			if a.NRGBAAt(x, y) != b.NRGBAAt(area.Min.X+area.Max.X-1-x, y) {
				return &image.Point{X: x, Y: y}
			}
		}
	}
	return nil
}

func TestNavigate_RightIsThePreviousTargetOfAMirroredRow(t *testing.T) {
	m, _ := glasses.Model("rayban_display")
	for direction, want := range map[string]int{"": 1, glasses.DirectionRTL: 0} {
		tree := glasses.Node{Type: glasses.NodeRow, Direction: direction, Children: []glasses.Node{
			{Type: glasses.NodeButton, ID: "a", Text: "A"}, {Type: glasses.NodeButton, ID: "b", Text: "B"}}}
		v := Clamp(m, glasses.View{Tree: &tree})
		if v = Navigate(m, v, "right"); v.Focus != want {
			t.Errorf("%q: right moves the focus to %d, want %d", direction, v.Focus, want)
		}
	}
}
