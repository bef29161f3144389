package render

import (
	"fmt"
	"image"
	"strings"
	"testing"

	"github.com/service-dev/service/proto/glasses"
	"github.com/service-dev/service/proto/glasses/render/typeset"
)

// TestEveryLineIsOnOnePage checks in the layout which line is completely on which page.
func TestEveryLineIsOnOnePage(t *testing.T) {
	tree := glasses.Node{Type: glasses.NodeColumn, Overflow: glasses.OverflowPaginate, Gap: 5, Children: []glasses.Node{
		{Type: glasses.NodeText, Style: glasses.StyleTitle, Text: "title"},
		{Type: glasses.NodeColumn, Padding: 4, Children: []glasses.Node{
			{Type: glasses.NodeText, Text: strings.Repeat("some words of a long text ",
				40)}, {Type: glasses.NodeButton, Text: "a button"}}},
		{Type: glasses.NodeRow, Children: []glasses.Node{{Type: glasses.NodeIcon, Icon: "sun"},
			{Type: glasses.NodeText, Text: "beside"}}},
		{Type: glasses.NodeProgress, Value: 3},
		{Type: glasses.NodeList, Children: []glasses.Node{{Type: glasses.NodeText, Text: "an entry"},
			{Type: glasses.NodeButton, Text: "last"}}},
	}}
	for _, m := range glasses.Models() {
		sc, ok := newScreen(m)
		if !ok {
			continue
		}
		whole := map[string]int{}
		root := newScene(sc, glasses.View{Tree: &tree}).root
		pages := root.pages()
		for page := range pages {
			s := newScene(sc, glasses.View{Tree: &tree, Scroll: page * root.page()})
			if s.scroll() != page*root.page() {
				t.Fatalf("%s: page %d is at %d", m.ID, page, s.scroll())
			}
			s.walk(func(b *box, r, clip image.Rectangle) {
				switch {
				case b.n.Type == glasses.NodeText:
					for i, l := range b.text.lines {
						line := image.Rect(r.Min.X, r.Min.Y+b.padY+l.top, r.Max.X,
							r.Min.Y+b.padY+l.top+b.text.face.line)
						note(t, whole, fmt.Sprintf("%s line %d", b.path(), i), line, clip)
					}
				case !isContainer(b.n):
					note(t, whole, b.path(), r, clip)
				}
			})
		}
		for what, times := range whole {
			if times != 1 {
				t.Errorf("%s: %s is on %d pages of %d", m.ID, what, times, pages)
			}
		}
		if len(whole) < 12 || pages < 2 {
			t.Errorf("%s: only %d lines on %d pages", m.ID, len(whole), pages)
		}
	}
}

func note(t *testing.T, whole map[string]int, what string, r, clip image.Rectangle) {
	switch seen := r.Intersect(clip); {
	case r.In(clip):
		whole[what]++
	case !seen.Empty():
		t.Errorf("%s is cut: %v of %v", what, seen, r)
	default:
		whole[what] += 0
	}
}

func TestWrap(t *testing.T) {
	f := face{size: 20, line: 25}
	width := newParagraph("0123456789", f, typeset.Options{}).natural
	for text, want := range map[string][]string{
		"":                            {""},
		"one two":                     {"one two"},
		"a\n\nb\n":                    {"a", "", "b", ""},
		"0123456789 0123456789":       {"0123456789", "0123456789"},
		"0123456789abcdef":            {"0123456789", "abcdef"},
		"word 0123456789abc":          {"word", "0123456789", "abc"},
		"tail      ":                  {"tail"},
		"crlf\r\nnext":                {"crlf", "next"},
		"e\u0301\u200d\u0300 \ufe0f!": {"e\u0301\u200d\u0300 \ufe0f!"},
	} {
		p := newParagraph(text, f, typeset.Options{Auto: true})
		p.wrap(width)
		var got []string
		for _, l := range p.lines {
			line := ""
			for _, g := range p.glyphs[l.from:l.to] {
				line += string(g.r) + string(g.more)
			}
			got = append(got, line)
			if l.width > width {
				t.Errorf("%q: line %q is %d wide of %d", text, line, l.width, width)
			}
		}
		if strings.Join(got, "|") != strings.Join(want, "|") {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	p := newParagraph("narrow", f, typeset.Options{})
	if p.wrap(0); len(p.lines) != 6 {
		t.Errorf("no width: %d lines", len(p.lines))
	}
}

func TestTextLimitsOfThePanel(t *testing.T) {
	g1, _ := glasses.Model("even_g1")
	tree := glasses.Node{Type: glasses.NodeText, Text: strings.Repeat("words and ", 100)}
	for _, style := range []string{"", glasses.StyleTitle, glasses.StyleCaption} {
		tree.Style = style
		sc, _ := newScreen(g1)
		p := newScene(sc, glasses.View{Tree: &tree}).root.text
		shown := 0
		for _, l := range p.lines {
			if l.top+p.face.line <= g1.Panel.Height {
				shown++
			}
			if l.width > 488 {
				t.Errorf("%s: a line of %d pixels", style, l.width)
			}
		}
		if shown != 5 {
			t.Errorf("%s: %d lines", style, shown)
		}
	}
}

func TestCachesAreBounded(t *testing.T) {
	for size := range 20 {
		runes := make([]rune, 600)
		for i := range runes {
			runes[i] = rune(0x20 + i)
		}
		glyphs.of(face{size: 10 + size}, runes)
	}
	for size := range 16 {
		for _, name := range Icons() {
			iconMask(name, 1+size)
		}
	}
	if len(glyphs.glyphs) > maxGlyphs || len(iconCache.masks) > maxIcons {
		t.Errorf("%d glyphs, %d icons", len(glyphs.glyphs), len(iconCache.masks))
	}
}
