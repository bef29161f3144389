package render_test

import (
	"bytes"
	"fmt"
	"image"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/render"
)

// randomTree returns a random tree with few words and small lengths, so that its nodes are likely to overlap.
func randomTree(r *rand.Rand, depth int) glasses.Node {
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	n := glasses.Node{
		Type: pick("column", "column", "row", "list", "text", "button", "icon", "progress", "image",
			"other"), ID: fmt.Sprintf("n%d", r.IntN(100)),
		Style: pick("", "title", "caption"), Align: pick("", "start", "center", "end"), Overflow: pick("", "clip",
			"scroll", "paginate"),
		Text:      strings.Repeat(pick(append(render.Samples, "x", "ж")...), r.IntN(30)),
		Direction: pick(render.Directions...), Icon: pick(append(render.Icons(), "none")...),
		Colour: pick("", "#ff0000", "#0000ff", "#777777"), Value: r.IntN(101), Gap: r.IntN(12), Padding: r.IntN(12),
		Width: r.IntN(3) * r.IntN(90), Height: r.IntN(3) * r.IntN(90), Grow: r.IntN(3), Data: "AAAA",
	}
	if depth > 0 && (n.Type == "column" || n.Type == "row" || n.Type == "list") {
		for range r.IntN(6) {
			n.Children = append(n.Children, randomTree(r, depth-1))
		}
	}
	return n
}

func TestNothingOutsideARoundPanel(t *testing.T) {
	m, _ := glasses.Model("brilliant_halo")
	r := rand.New(rand.NewPCG(1, 2))
	for range 40 {
		tree := randomTree(r, 4)
		img := render.Draw(m, glasses.View{Tree: &tree, Scroll: r.IntN(500)})
		side := 256 * 70710 / 100000
		use := image.Rect(0, 0, side, side).Add(image.Pt((256-side)/2, (256-side)/2))
		for i := 0; i < len(img.Pix); i += 4 {
			if p := image.Pt(i/4%256, i/4/256); !p.In(use) && img.Pix[i]|img.Pix[i+1]|img.Pix[i+2] != 0 {
				t.Fatalf("pixel %v is lit, but the usable area is %v", p, use)
			}
		}
	}
}

func TestDrawHasThePanelsSizeAndColours(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, m := range glasses.Models() {
		if m.Panel == nil {
			if render.Draw(m, glasses.View{}) != nil || render.PNG(nil) != nil ||
				render.Targets(m, glasses.View{}) != nil {
				t.Errorf("%s has a picture or targets, but no panel", m.ID)
			}
			continue
		}
		most := map[string]int{"even_g1": 2, "even_g2": 16, "brilliant_frame": 16}[m.ID]
		colours := map[[4]byte]bool{}
		for i := range 15 {
			v := glasses.View{Focus: -1}
			if i > 0 {
				tree := randomTree(r, 3)
				v.Tree = &tree
			}
			img := render.Draw(m, v)
			if img.Rect != image.Rect(0, 0, m.Panel.Width, m.Panel.Height) {
				t.Fatalf("%s: %v", m.ID, img.Rect)
			}
			for i := 0; i < len(img.Pix); i += 4 {
				colours[[4]byte(img.Pix[i:])] = true
			}
			if i == 0 && (len(colours) != 1 || !colours[[4]byte{0, 0, 0, 255}]) {
				t.Errorf("%s: a clear panel is not black", m.ID)
			}
		}
		if most > 0 && len(colours) > most {
			t.Errorf("%s shows %d colours, want at most %d", m.ID, len(colours), most)
		}
	}
}

func TestClampIsIdempotentAndInBounds(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, m := range panels() {
		for i := range 60 {
			tree := randomTree(r, 4)
			v := glasses.View{Tree: &tree, Focus: r.IntN(40) - 5, Scroll: r.IntN(3000) - 500}
			once := render.Clamp(m, v)
			n := len(render.Targets(m, v))
			if once.Focus < -1 || once.Focus >= n || once.Scroll < 0 {
				t.Fatalf("%s: invalid focus %d of %d targets, or scroll %d", m.ID, once.Focus, n, once.Scroll)
			}
			if diff := cmp.Diff(once, render.Clamp(m, once)); diff != "" {
				t.Fatalf("%s: clamping twice differs from clamping once: %s", m.ID, diff)
			}
			if i%10 == 0 && !bytes.Equal(render.Draw(m, v).Pix, render.Draw(m, once).Pix) {
				t.Fatalf("%s: clamping changes the picture", m.ID)
			}
		}
	}
	headset, _ := glasses.Model("system_audio")
	if v := render.Clamp(headset, glasses.View{Focus: 3, Scroll: 9}); v.Focus != -1 || v.Scroll != 0 {
		t.Errorf("without a panel: got %+v, want focus -1 and scroll 0", v)
	}
}

// list returns n entries in several languages. Some are buttons, and some have several lines.
func list(n int, overflow string) glasses.Node {
	tree := glasses.Node{Type: glasses.NodeList, Overflow: overflow, Gap: 3}
	for i := range n {
		k := glasses.Node{Type: glasses.NodeText, ID: fmt.Sprintf("entry-%d", i),
			Text: fmt.Sprintf("entry %d%s", i, strings.Repeat(render.Samples[i%len(render.Samples)], i%9))}
		if i%3 == 1 {
			k.Type = glasses.NodeButton
		}
		tree.Children = append(tree.Children, k)
	}
	return tree
}

func TestNavigationReachesEveryTargetAndShowsIt(t *testing.T) {
	for _, m := range panels() {
		for _, overflow := range []string{glasses.OverflowScroll, glasses.OverflowPaginate} {
			inner, alone := list(25, overflow), list(25, overflow)
			wrapped := glasses.Node{Type: glasses.NodeColumn,
				Children: []glasses.Node{{Type: glasses.NodeText, Text: "above"}, inner}}
			both := glasses.Node{Type: glasses.NodeRow, Direction: glasses.DirectionRTL,
				Children: []glasses.Node{list(12, overflow),
					list(12, overflow)}}
			for name, tree := range map[string]glasses.Node{"alone": alone, "wrapped": wrapped,
				"two side by side": both} {
				v := render.Clamp(m, glasses.View{Tree: &tree})
				n := len(render.Targets(m, v))
				for want := range n {
					if v.Focus != want {
						t.Fatalf("%s %s %s: focus %d, want %d", m.ID, name, overflow, v.Focus, want)
					}
					seen(t, m, v, name+" "+overflow)
					v = render.Navigate(m, v, "down")
				}
				for want := n - 1; want >= 0; want-- {
					if v.Focus != want {
						t.Fatalf("%s %s %s: on the way back: focus %d, want %d", m.ID, name, overflow, v.Focus, want)
					}
					v = render.Navigate(m, v, "left")
				}
				if v = render.Navigate(m, v, "up"); v.Focus != 0 || v.Scroll != 0 {
					t.Errorf("%s %s %s: at the top: focus %d, scroll %d, want 0, 0", m.ID, name, overflow, v.Focus, v.Scroll)
				}
			}
		}
	}
}

// seen fails if no part of the focused target is on the panel, or if a tap on that part hits another target.
func seen(t *testing.T, m glasses.DeviceModel, v glasses.View, name string) {
	t.Helper()
	target := render.Targets(m, v)[v.Focus]
	for y := target.Rect.Min.Y; y < target.Rect.Max.Y; y++ {
		if got, ok := render.Hit(m, v, (target.Rect.Min.X+target.Rect.Max.X)/2, y); ok {
			if got.Path != target.Path || got.ID != target.ID {
				t.Fatalf("%s %s: a tap on %s hits %s", m.ID, name, target.Path, got.Path)
			}
			if target.Rect.Dy() < m.Panel.Height/3 && y != target.Rect.Min.Y {
				t.Fatalf("%s %s: the top of %s is not visible: %v", m.ID, name, target.Path, target.Rect)
			}
			return
		}
	}
	t.Fatalf("%s %s: %s is not visible at %v", m.ID, name, target.Path, target.Rect)
}

func TestScrollingWithoutTargetsReachesTheEnd(t *testing.T) {
	for _, m := range panels() {
		for _, overflow := range []string{glasses.OverflowScroll, glasses.OverflowPaginate} {
			tree := glasses.Node{Type: glasses.NodeColumn, Overflow: overflow,
				Children: []glasses.Node{{Type: glasses.NodeText, Text: strings.Repeat("line\n", 60)}}}
			v := render.Clamp(m, glasses.View{Tree: &tree})
			if v.Focus != -1 {
				t.Fatalf("the focus is %d in a tree without targets, want -1", v.Focus)
			}
			end := render.Clamp(m, glasses.View{Tree: &tree, Scroll: 1 << 20}).Scroll
			steps := 0
			for ; v.Scroll < end && steps < 200; steps++ {
				v = render.Navigate(m, v, "down")
			}
			for ; v.Scroll > 0 && steps < 400; steps++ {
				v = render.Navigate(m, v, "up")
			}
			if end == 0 || steps < 4 || steps >= 200 {
				t.Errorf("%s %s: scrolling %d pixels took %d steps, want 4 to 199", m.ID, overflow, end, steps)
			}
			if again := render.Navigate(m, v, "sideways"); again != v {
				t.Errorf("an unknown direction changed the view to %+v", again)
			}
		}
	}
}
