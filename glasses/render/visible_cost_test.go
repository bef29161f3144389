package render

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"strings"
	"testing"

	"github.com/service-dev/service/glasses"
)

// crowdedTree is a tree near the limits whose nodes cover each other.
type crowdedTree struct {
	name string
	tree glasses.Node
}

// crowdedTrees returns trees with the maximum number of nodes that still fit in a frame.
func crowdedTrees() []crowdedTree {
	colour := func(i int) string { return fmt.Sprintf("#%06x", uint32(i+1)*2654435761&0xffffff) }
	fill := func(kids func(i int) glasses.Node) []glasses.Node {
		out := make([]glasses.Node, 490)
		for i := range out {
			out[i] = kids(i)
		}
		return out
	}
	texts := func(style, text string) []glasses.Node {
		return fill(func(i int) glasses.Node {
			return glasses.Node{Type: glasses.NodeText, Style: style, Text: text, Colour: colour(i)}
		})
	}
	row := func(kids []glasses.Node) glasses.Node {
		return glasses.Node{Type: glasses.NodeRow, Children: kids}
	}
	// narrow leaves a row only 58 pixels of the widest panel, so that most children have no width and share a
	// position.
	narrow := func(kids []glasses.Node) glasses.Node {
		return row([]glasses.Node{row(kids), {Type: glasses.NodeProgress, Width: 542, Height: 5}})
	}
	nested := glasses.Node{Type: glasses.NodeList, Overflow: glasses.OverflowScroll,
		Children: []glasses.Node{row(texts("large", "W@W@W@W")[:460])}}
	for range 20 {
		nested = glasses.Node{Type: glasses.NodeColumn, Overflow: glasses.OverflowScroll, Children: []glasses.Node{nested}}
	}
	veil := veilPicture()
	veiled := fill(func(i int) glasses.Node {
		if i%10 == 9 {
			return glasses.Node{Type: glasses.NodeImage, Data: veil, Width: 1 + i%2, Height: 600}
		}
		return glasses.Node{Type: glasses.NodeText, Style: "large", Text: "WWWWWWW", Colour: colour(i)}
	})
	big := row(append(texts("large", "@@@@@@@")[:489], glasses.Node{Type: glasses.NodeImage, Data: bigPicture(), Width: 60}))
	return []crowdedTree{
		{"large texts in a row", row(texts("large", "AAAAAAA"))},
		{"wide glyphs in a row", row(texts("large", "@W@W@W@"))},
		{"captions in a row", row(texts("caption", strings.Repeat("@8", 11)))},
		{"captions at one place", narrow(texts("caption", strings.Repeat("@8", 11)))},
		{"hyphens at one place", row(texts("large", "W"+strings.Repeat("\u00ad", 16)))},
		{"texts in nested scrollers", nested},
		{"veils over texts", row(veiled)},
		{"a large picture among texts", big},
		{"a long text of blank lines", glasses.Node{Type: glasses.NodeText,
			Text: strings.Repeat("\u00ad", 12000) + "x" + strings.Repeat("\n", 12000)}},
	}
}

// veilPicture returns a semi-transparent picture.
func veilPicture() string {
	img := image.NewNRGBA(image.Rect(0, 0, 1, 8))
	for y := range 8 {
		img.SetNRGBA(0, y, color.NRGBA{uint8(31 * y), 90, 200, 20})
	}
	return encoded(img)
}

// bigPicture returns a picture with the maximum number of pixels for a tree.
func bigPicture() string {
	return encoded(image.NewPaletted(image.Rect(0, 0, 2048, 2048), color.Palette{color.White}))
}

func encoded(img image.Image) string {
	var out bytes.Buffer
	if err := png.Encode(&out, img); err != nil {
		panic(err)
	}
	return base64.StdEncoding.EncodeToString(out.Bytes())
}

// accepted returns the tree in the form that a model receives.
func (c crowdedTree) accepted(tb testing.TB) *glasses.Node {
	tb.Helper()
	payload, err := json.Marshal(glasses.Show{Tree: c.tree})
	if err != nil || len(payload) > glasses.MaxFrame {
		tb.Fatalf("%s: %d bytes, %v", c.name, len(payload), err)
	}
	show, err := glasses.ParseShow(payload)
	if err != nil {
		tb.Fatalf("%s: %v", c.name, err)
	}
	if err := CheckImages(show.Tree); err != nil {
		tb.Fatalf("%s: %v", c.name, err)
	}
	return &show.Tree
}

// maxPaintedPerPixel is the maximum number of colours that Inspect may blend per pixel of a panel for the worst tree.
const maxPaintedPerPixel = 40

// TestInspect_PaintsABoundedNumberOfPixels inspects trees whose texts cover each other hundreds of times.
func TestInspect_PaintsABoundedNumberOfPixels(t *testing.T) {
	for _, c := range crowdedTrees() {
		tree := c.accepted(t)
		for _, id := range []string{"rayban_display", "brilliant_frame"} { // with and without antialiasing
			if !isCrowdedCase(c.name, id) {
				continue
			}
			m, _ := glasses.Model(id)
			s, _ := laidOut(m, Clamp(m, glasses.View{Tree: tree}))
			s.inspect()
			perPixel := s.painted / (m.Panel.Width * m.Panel.Height)
			t.Logf("%s, %s: each pixel was painted %d times", c.name, id, perPixel)
			if perPixel > maxPaintedPerPixel {
				t.Errorf("%s, %s: each pixel of the panel was painted %d times, more than allowed", c.name, id, perPixel)
			}
		}
	}
}

func BenchmarkInspect(b *testing.B) {
	m, _ := glasses.Model("rayban_display")
	for _, c := range crowdedTrees() {
		v := Clamp(m, glasses.View{Tree: c.accepted(b)})
		b.Run(strings.ReplaceAll(c.name, " ", "-"), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Inspect(m, v)
			}
		})
	}
}
