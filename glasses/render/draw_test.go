package render_test

import (
	"bytes"
	"encoding/json"
	"image"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/render"
)

func TestWords(t *testing.T) {
	tree := glasses.Node{Type: glasses.NodeColumn, Text: "not shown", Children: []glasses.Node{
		{Type: glasses.NodeText, Text: "first"}, {Type: glasses.NodeText},
		{Type: glasses.NodeRow, Children: []glasses.Node{{Type: glasses.NodeIcon, Text: "no"},
			{Type: glasses.NodeButton, Text: "second"}}},
		{Type: "map3d", Text: "no", Children: []glasses.Node{{Type: glasses.NodeText, Text: "no"}}},
		{Type: glasses.NodeText, Text: "third"}}}
	if diff := cmp.Diff([]string{"first", "second", "third"}, render.Words(&tree)); diff != "" {
		t.Error(diff)
	}
	if got := render.Words(nil); got == nil || len(got) != 0 {
		t.Errorf("words of a clear panel: got %#v, want an empty list", got)
	}
}

func TestDrawOver_LeavesNothingOfThePictureBefore(t *testing.T) {
	m, _ := glasses.Model("rayban_display")
	busy := glasses.View{Tree: &glasses.Node{Type: glasses.NodeText, Text: "A text that fills lines", Style: glasses.StyleLarge}}
	before := render.Draw(m, busy)
	over := render.DrawOver(before, m, glasses.View{})
	if over != before {
		t.Error("the picture has the size of the panel, but another one was allocated")
	}
	if !bytes.Equal(over.Pix, render.Draw(m, glasses.View{}).Pix) {
		t.Error("pixels of the picture before are left")
	}
	small, _ := glasses.Model("even_g1")
	if got, want := render.DrawOver(over, small, busy), render.Draw(small, busy); got.Rect != want.Rect ||
		!bytes.Equal(got.Pix, want.Pix) {
		t.Error("the picture on a panel of another size differs from a new one")
	}
}

func TestTargetsAndHit(t *testing.T) {
	m, _ := glasses.Model("rayban_display")
	tree := glasses.Node{Type: glasses.NodeColumn, Children: []glasses.Node{
		{Type: glasses.NodeButton, ID: "top", Text: "Top"},
		{Type: glasses.NodeList, Children: []glasses.Node{
			{Type: glasses.NodeRow, ID: "row",
				Children: []glasses.Node{{Type: glasses.NodeText, Text: "left", Grow: 1},
					{Type: glasses.NodeButton, ID: "inner", Text: "right"}}},
			{Type: glasses.NodeText, Text: "without id"}}}}}
	v := render.Clamp(m, glasses.View{Tree: &tree})
	if v.Focus != 0 {
		t.Errorf("a new tree has the focus on %d, want 0", v.Focus)
	}
	var got []string
	for _, target := range render.Targets(m, v) {
		got = append(got, target.ID+" "+target.Path)
		at := target.Rect.Min
		if hit, ok := render.Hit(m, v, at.X+3, at.Y+3); !ok || hit != target {
			t.Errorf("a tap on %+v hits %+v", target, hit)
		}
	}
	want := []string{"top tree.children[0]", "row tree.children[1].children[0]",
		"inner tree.children[1].children[0].children[1]", " tree.children[1].children[1]"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, at := range [][2]int{{599, 599}, {-1, 0}, {5000, 5000}} {
		if hit, ok := render.Hit(m, v, at[0], at[1]); ok {
			t.Errorf("a tap at %v hits %+v, want nothing", at, hit)
		}
	}
}

// The outlines of a focused entry and of a button without the focus have all four corners.
func TestOutlinesHaveWholeCorners(t *testing.T) {
	tree := glasses.Node{Type: glasses.NodeColumn, Gap: 8, Children: []glasses.Node{
		{Type: glasses.NodeList, Children: []glasses.Node{
			{Type: glasses.NodeRow, ID: "row", Children: []glasses.Node{{Type: glasses.NodeText, Text: "Row"}}}}},
		{Type: glasses.NodeButton, ID: "button", Text: "Button"}}}
	for _, m := range panels() {
		v := render.Clamp(m, glasses.View{Tree: &tree})
		img := render.Draw(m, v)
		targets := render.Targets(m, v)
		if len(targets) != 2 || v.Focus != 0 {
			t.Fatalf("%s: got targets %+v and focus %d, want the row with the focus and the button", m.ID, targets, v.Focus)
		}
		for _, target := range targets {
			if m.Panel.Shape == glasses.ShapeRound && target.ID == "row" {
				continue // the circle of the panel may cut its corners
			}
			r := target.Rect
			for _, at := range []image.Point{r.Min, {X: r.Max.X - 1, Y: r.Min.Y}, {X: r.Min.X, Y: r.Max.Y - 1},
				r.Max.Sub(image.Pt(1, 1))} {
				if c := img.NRGBAAt(at.X, at.Y); c.R == 0 && c.G == 0 && c.B == 0 {
					t.Errorf("%s: the outline of %s at %v lacks its corner %v", m.ID, target.ID, r, at)
				}
			}
		}
	}
}

func TestFocusIsSeen(t *testing.T) {
	tree := glasses.Node{Type: glasses.NodeList, Children: []glasses.Node{
		{Type: glasses.NodeButton, Text: "one"}, {Type: glasses.NodeText, Text: "two"},
		{Type: glasses.NodeRow, Children: []glasses.Node{{Type: glasses.NodeIcon, Icon: "sun"}}}}}
	for _, m := range panels() {
		pictures := map[string]int{}
		for focus := -1; focus < 3; focus++ {
			pictures[string(render.Draw(m, glasses.View{Tree: &tree, Focus: focus}).Pix)] = focus
		}
		if len(pictures) != 4 {
			t.Errorf("%s: got %d different pictures, want 4", m.ID, len(pictures))
		}
	}
}

func TestEveryIconIsSeenAndDiffers(t *testing.T) {
	for _, m := range panels() {
		pictures := map[string]string{}
		for _, name := range append(render.Icons(), "unknown") {
			tree := glasses.Node{Type: glasses.NodeIcon, Icon: name}
			key := string(render.Draw(m, glasses.View{Tree: &tree}).Pix)
			if other, ok := pictures[key]; ok {
				t.Errorf("%s: %s looks like %s", m.ID, name, other)
			}
			pictures[key] = name
		}
	}
}

func TestTreesBeyondTheLimitsAreDrawnInPart(t *testing.T) {
	deep := &glasses.Node{Type: glasses.NodeText, Text: "deep"}
	for range 1000 {
		deep = &glasses.Node{Type: glasses.NodeColumn, Children: []glasses.Node{*deep}}
	}
	wide := glasses.Node{Type: glasses.NodeRow, Children: make([]glasses.Node, 5000)}
	for _, tree := range []*glasses.Node{deep, &wide, {Type: glasses.NodeText, Text: strings.Repeat("x", 1<<17)},
		{Type: glasses.NodeColumn, Padding: 1 << 40, Gap: -5, Grow: -3, Value: 1 << 40,
			Children: []glasses.Node{{Type: glasses.NodeProgress, Value: -7, Width: -1}}}} {
		v := glasses.View{Tree: tree, Scroll: 1 << 50, Focus: 1 << 50}
		for _, m := range panels() {
			render.Draw(m, v)
			render.Navigate(m, v, "down")
		}
	}
	for _, p := range []glasses.Panel{{}, {Width: -1, Height: 5}, {Width: 1 << 30, Height: 1 << 30}} {
		if render.Draw(glasses.DeviceModel{Panel: &p}, glasses.View{}) != nil {
			t.Errorf("the invalid panel %+v was drawn", p)
		}
	}
	for _, p := range []glasses.Panel{{Width: 1, Height: 1},
		{Width: 3, Height: 900, Shape: glasses.ShapeRound, TextLines: 1000}, {Width: 40, Height: 2, Colour: "other"}} {
		tree := list(30, glasses.OverflowPaginate)
		if img := render.Draw(glasses.DeviceModel{Panel: &p}, glasses.View{Tree: &tree}); img.Rect.Dx() != p.Width ||
			img.Rect.Dy() != p.Height {
			t.Errorf("panel %+v: the picture has the size %v", p, img.Rect)
		}
	}
}

func TestDrawingAtTheSameTime(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	tree := randomTree(r, 4)
	m := panels()[0]
	want := render.PNG(render.Draw(m, glasses.View{Tree: &tree}))
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			if !bytes.Equal(want, render.PNG(render.Draw(m, glasses.View{Tree: &tree}))) {
				t.Error("concurrent drawing returned a different picture")
			}
		})
	}
	wait.Wait()
}

func FuzzDraw(f *testing.F) {
	r := rand.New(rand.NewPCG(9, 10))
	for range 20 {
		seed, _ := json.Marshal(glasses.Show{Tree: randomTree(r, 4)})
		f.Add(seed, r.IntN(8)-1, r.IntN(400))
	}
	long, _ := json.Marshal(glasses.Show{Tree: glasses.Node{Type: glasses.NodeList,
		Overflow: glasses.OverflowPaginate, Padding: 4000,
		Children: []glasses.Node{{Type: glasses.NodeText, Text: strings.Repeat("x\n", 20000)}}}})
	f.Add(long, 0, 77777)
	f.Fuzz(func(t *testing.T, payload []byte, focus, scroll int) {
		if len(payload) > glasses.MaxFrame {
			return
		}
		show, err := glasses.ParseShow(payload)
		if err != nil { // most inputs are not a tree, so derive one from the bytes
			var seed [32]byte
			copy(seed[:], payload)
			tree, _ := json.Marshal(glasses.Show{Tree: randomTree(rand.New(rand.NewChaCha8(seed)), 1+len(payload)%6)})
			if show, err = glasses.ParseShow(tree); err != nil { // more than 500 nodes
				return
			}
		}
		for _, m := range panels() {
			began := time.Now()
			v := glasses.View{Tree: &show.Tree, Focus: focus, Scroll: scroll}
			img := render.Draw(m, v)
			if img.Rect.Dx() != m.Panel.Width || img.Rect.Dy() != m.Panel.Height {
				t.Fatal(img.Rect)
			}
			v = render.Navigate(m, v, "down")
			if n := len(render.Targets(m, v)); v != render.Clamp(m, v) || v.Focus >= n {
				t.Fatalf("view %+v of %d targets is not valid", v, n)
			}
			if took := time.Since(began); took > 20*time.Second {
				t.Fatalf("%s took %v", m.ID, took)
			}
		}
	})
}

func BenchmarkDraw(b *testing.B) {
	for _, id := range []string{"even_g1", "rayban_display"} {
		m, _ := glasses.Model(id)
		for _, g := range goldens() {
			if g.name != "list" && g.name != "text" && g.name != "image" {
				continue
			}
			v := g.of(b)
			b.Run(id+"/"+g.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					render.Draw(m, v)
				}
			})
		}
	}
}
