package render

import (
	"bytes"
	"image"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/service-dev/service/glasses"
)

// smallTree returns a tree of few nodes that are likely to overlap: overlong rows, nested scrollers, large paddings.
func smallTree(r *rand.Rand, depth int) glasses.Node {
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	n := glasses.Node{
		Type:  pick("column", "column", "row", "list", "text", "text", "button"),
		Style: pick("", "title", "caption"), Align: pick("", "start", "center", "end"),
		Overflow:  pick("", "clip", "scroll", "paginate"),
		Text:      strings.Repeat(pick(append(Samples, "j", "Éf")...), 1+r.IntN(1+r.IntN(30))),
		Direction: pick(Directions...), Language: pick("", "ja", "zh-Hant", "ur"),
		Colour: pick("", "", "#ff0000", "#0000ff", "#777777", "#030303", "#000000"),
		Gap:    r.IntN(12), Padding: r.IntN(12), Grow: r.IntN(3),
	}
	if depth == 0 {
		n.Type = pick("text", "text", "button", "icon", "progress", "image", "other")
		n.Width, n.Height, n.Data = r.IntN(3)*r.IntN(90), r.IntN(3)*r.IntN(90), "AAAA"
		n.Icon, n.Value = pick(Icons()...), r.IntN(101)
		return n
	}
	if n.Type == "column" || n.Type == "row" || n.Type == "list" {
		for range 1 + r.IntN(5) {
			n.Children = append(n.Children, smallTree(r, depth-1))
		}
	}
	return n
}

// seededView returns one case: a tree on a model with a panel, with focus and scroll position.
func seededView(seed uint64) (glasses.DeviceModel, glasses.View) {
	r := rand.New(rand.NewPCG(seed, 12))
	var models []glasses.DeviceModel
	for _, m := range glasses.Models() {
		if m.Panel != nil {
			models = append(models, m)
		}
	}
	tree := smallTree(r, 1+r.IntN(3))
	m := models[r.IntN(len(models))]
	return m, Clamp(m, glasses.View{Tree: &tree, Focus: r.IntN(8) - 1, Scroll: r.IntN(2) * r.IntN(700)})
}

// pixelsSay determines how much of the text of b is visible from drawn pixels alone. It compares the pixels that
// differ between the panel with and without the text with the text's pixels on an unclipped canvas.
func pixelsSay(s *scene, p paintedBox) string {
	panel := reach(s, p).Intersect(p.clip)
	with, without := image.NewNRGBA(panel), image.NewNRGBA(panel)
	s.paint(with, nil)
	s.paint(without, p.box)
	return amount(differing(with, func(row int) []byte { return without.Pix[row*without.Stride:] }), unclipped(s, p))
}

// amount names the proportion of visible pixels.
func amount(shown, all int) string {
	if all == 0 { // black text, which can only darken what is below it
		return VisibleNone
	}
	switch shown {
	case 0:
		return VisibleNone
	case all:
		return VisibleFull
	}
	return VisiblePartial
}

// reach returns a rectangle that contains every pixel of a text.
func reach(s *scene, p paintedBox) image.Rectangle {
	widest := 0
	for _, l := range p.text.lines {
		widest = max(widest, l.width)
	}
	r := image.Rect(p.r.Min.X, p.r.Min.Y, p.r.Max.X, p.r.Max.Y+p.text.height()).Inset(-2 * s.title.size)
	if p.align != "" {
		r.Min.X -= widest
	}
	r.Max.X += max(widest-p.r.Dx(), 0)
	return r
}

// unclipped counts the pixels of a text on a canvas that does not clip, with each line at its position on the panel:
// near an edge of the panel a line may move over the next one.
func unclipped(s *scene, p paintedBox) int {
	free := reach(s, p)
	alone := image.NewNRGBA(free)
	ink, under := s.inks(p.box)
	c := canvas{img: alone, q: s.quantiser}
	if under != (rgb{}) {
		c.fill(free, free, under)
	}
	for _, l := range p.text.lines {
		at, _ := p.lineAt(l, p.r, s.paintClip(p.r, p.clip), s.leastCover())
		c.line(p.text, l, at, free, ink)
	}
	s.finish(alone)
	ground := make([]byte, alone.Stride)
	for i := 0; i < len(ground); i += 4 {
		of := s.shown(under)
		copy(ground[i:], of[:])
	}
	return differing(alone, func(int) []byte { return ground })
}

// differing counts the pixels that differ between a picture and the rows of another.
func differing(a *image.NRGBA, b func(row int) []byte) int {
	n := 0
	for y := range a.Rect.Dy() {
		left, right := a.Pix[y*a.Stride:][:a.Stride], b(y)[:a.Stride]
		if bytes.Equal(left, right) {
			continue
		}
		for i := 0; i < a.Stride; i += 4 {
			if [3]byte(left[i:]) != [3]byte(right[i:]) {
				n++
			}
		}
	}
	return n
}

// graphicsByPixels determines how much of each graphic is visible by painting the tree node by node: a pixel of a
// graphic is visible if painting it changed the pixel and no later node does.
func graphicsByPixels(s *scene) (want []string) {
	type painted struct {
		at     int // index in want
		pixels map[int]bool
		all    int
		black  bool
	}
	var graphics []painted
	now := image.NewNRGBA(s.area)
	c := canvas{img: now, q: s.quantiser, pixels: maxPixels}
	s.walk(func(b *box, r, clip image.Rectangle) {
		before := shownPixels(s, now)
		if r.Overlaps(clip) {
			c.node(s, b, r, s.paintClip(r, clip))
		}
		var changed []int
		after := shownPixels(s, now)
		for i := 0; i < len(before); i += 4 {
			if [3]byte(before[i:]) != [3]byte(after[i:]) {
				changed = append(changed, i)
				for _, g := range graphics {
					delete(g.pixels, i)
				}
			}
		}
		if !isGraphic(b.n) {
			return
		}
		at := s.graphicRect(b, r)
		black := b.n.Type == glasses.NodeImage && len(changed) == 0 && at.Overlaps(s.paintClip(r, clip))
		g := painted{len(want), map[int]bool{}, len(changed), black}
		_, isBright := s.leastSeen(s.ink(b.n.Colour), rgb{})
		for _, i := range changed {
			g.pixels[i] = isBright || b.n.Type == glasses.NodeImage // what only darkens other parts cannot be seen
		}
		maps.DeleteFunc(g.pixels, func(_ int, seen bool) bool { return !seen })
		// Without a clip, the graphic would have all of its pixels.
		limit := VisiblePartial
		if at.In(s.paintClip(r, clip)) {
			limit = VisibleFull
		}
		graphics, want = append(graphics, g), append(want, limit)
	})
	for _, g := range graphics {
		switch {
		case g.black: // a black image is on the panel
		case len(g.pixels) == 0:
			want[g.at] = VisibleNone
		case len(g.pixels) < g.all:
			want[g.at] = VisiblePartial
		}
	}
	return want
}

// shownPixels returns the pixels that the panel shows of a picture.
func shownPixels(s *scene, img *image.NRGBA) []byte {
	shown := &image.NRGBA{Pix: bytes.Clone(img.Pix), Stride: img.Stride, Rect: img.Rect}
	s.finish(shown)
	return shown.Pix
}

// checkGraphics compares the graphics of Inspect with the pixels. It counts those of each type that are not fully
// visible.
func checkGraphics(t *testing.T, seed uint64, found map[string]int) {
	t.Helper()
	m, v := seededView(seed)
	s, _ := laidOut(m, v)
	want, got := graphicsByPixels(s), Inspect(m, v).Graphics
	if len(got) != len(want) {
		t.Fatalf("seed %d: got %d graphics, want %d", seed, len(got), len(want))
	}
	for i, g := range got {
		if g.Visible != want[i] {
			t.Errorf("seed %d, %s, %s %s at %v: got %s, the pixels say %s", seed, m.ID, g.Path, g.Type, g.Rect, g.Visible,
				want[i])
		}
		found[g.Type+" "+g.Visible]++
	}
}

// TestInspect_GraphicsAreWhatThePixelsSay draws seeded trees until they contain enough graphics of each type with each
// visibility.
func TestInspect_GraphicsAreWhatThePixelsSay(t *testing.T) {
	found := map[string]int{}
	isEnough := func() bool {
		for _, kind := range []string{"icon", "progress", "image", "other"} {
			for _, visible := range []string{VisibleFull, VisiblePartial, VisibleNone} {
				if found[kind+" "+visible] < graphicsOfEach {
					return false
				}
			}
		}
		return true
	}
	for seed := uint64(1); !isEnough() && !t.Failed(); seed++ {
		checkGraphics(t, seed, found)
	}
	t.Log(found)
}

// A graphic in a box without width, where other boxes take all of it, is not painted, and not visible either.
func TestInspect_GraphicInABoxWithoutWidth(t *testing.T) {
	m, _ := glasses.Model("even_g1")
	tree := glasses.Node{Type: glasses.NodeRow, Children: []glasses.Node{{Type: glasses.NodeProgress, Width: 576},
		{Type: glasses.NodeColumn, Children: []glasses.Node{{Type: glasses.NodeIcon, ID: "a", Icon: "check", Width: 40}}}}}
	v := Clamp(m, glasses.View{Tree: &tree})
	got := Inspect(m, v).Graphics
	if len(got) != 2 || got[1].Visible != VisibleNone || got[1].Whole {
		t.Errorf("got %+v, want an icon that is not visible", got)
	}
	for _, f := range Fit(m, v) {
		if f.Kind == glasses.FindingClipped && strings.HasSuffix(f.Path, ".children[0]") {
			return
		}
	}
	t.Errorf("got findings %+v, want the icon clipped", Fit(m, v))
}

// checkInspect compares Inspect with the pixels, and returns the number of texts that are not fully visible, which a
// rule based only on the tree would misread.
func checkInspect(t *testing.T, seed uint64) (misread int) {
	m, v := seededView(seed)
	s, _ := laidOut(m, v)
	got := Inspect(m, v).Texts
	i := 0
	s.walk(func(b *box, r, clip image.Rectangle) {
		if b.text == nil || b.n.Text == "" || t.Failed() {
			return
		}
		want := pixelsSay(s, paintedBox{b, r, clip})
		if got[i].Path != b.path() || got[i].Visible != want {
			t.Errorf("seed %d, %s, %s %q at %v in %v, focus %d: got %s, the pixels say %s", seed, m.ID, b.path(), b.n.Text, r,
				clip, s.focus, got[i].Visible, want)
		}
		if want != VisibleFull {
			misread++
		}
		i++
	})
	return misread
}

// TestInspect_IsWhatThePixelsSay draws seeded trees until misreadTrees of them contain text that is not completely
// visible.
func TestInspect_IsWhatThePixelsSay(t *testing.T) {
	const workers = 4
	var seed, misread atomic.Uint64
	var wait sync.WaitGroup
	for range workers {
		wait.Go(func() {
			for misread.Load() < misreadTrees && !t.Failed() {
				if checkInspect(t, seed.Add(1)) > 0 {
					misread.Add(1)
				}
			}
		})
	}
	wait.Wait()
	t.Logf("%d trees, %d of them misread by a rule that looks at the tree alone", seed.Load(), misread.Load())
}

// TestInspect_FindsTheMarkerColour looks for one red text among blue nodes in the pictures of Draw, which keep colours.
func TestInspect_FindsTheMarkerColour(t *testing.T) {
	checked := 0
	for seed := uint64(1); seed <= 60; seed++ {
		m, v := seededView(seed)
		v.Focus = -1
		if m.Panel.Colour != glasses.ColourRGB {
			continue
		}
		s, _ := laidOut(m, v)
		s.walk(func(b *box, r, clip image.Rectangle) {
			if b.n.Type != glasses.NodeText || b.n.Text == "" {
				return
			}
			recolour(v.Tree, "#0000ff")
			b.n.Colour = "#ff0000"
			red := 0
			img := Draw(m, v)
			for i := 0; i < len(img.Pix); i += 4 {
				if img.Pix[i] > img.Pix[i+1] {
					red++
				}
			}
			want := amount(red, unclipped(s, paintedBox{b, r, clip}))
			for _, got := range Inspect(m, v).Texts {
				if got.Path == b.path() && got.Visible != want {
					t.Errorf("seed %d, %s, %s: got %s, but the picture says %s", seed, m.ID, got.Path, got.Visible, want)
				}
			}
			checked++
		})
	}
	if checked < 50 {
		t.Errorf("only %d texts were checked, want at least 50", checked)
	}
}

func recolour(n *glasses.Node, colour string) {
	n.Colour = colour
	for i := range n.Children {
		recolour(&n.Children[i], colour)
	}
}
