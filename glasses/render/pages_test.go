package render

import (
	"fmt"
	"image"
	"strings"
	"testing"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/render/typeset"
)

// TestEveryLineIsOnOnePage determines from the layout which lines are completely on which page.
func TestEveryLineIsOnOnePage(t *testing.T) {
	for i, sample := range Samples {
		for j, m := range glasses.Models() {
			if sc, ok := newScreen(m); ok && (i+j)%3 == 0 { // every model gets several of them
				everyLineIsOnOnePage(t, m.ID, sc, sample, Directions[i%len(Directions)])
			}
		}
	}
}

func everyLineIsOnOnePage(t *testing.T, model string, sc screen, sample, direction string) {
	tree := glasses.Node{Type: glasses.NodeColumn, Overflow: glasses.OverflowPaginate, Gap: 5, Children: []glasses.Node{
		{Type: glasses.NodeText, Style: glasses.StyleTitle, Text: sample},
		{Type: glasses.NodeColumn, Padding: 4, Children: []glasses.Node{
			{Type: glasses.NodeText, Text: strings.Repeat(sample, 250)},
			{Type: glasses.NodeButton, Text: "a button"}}},
		{Type: glasses.NodeRow, Children: []glasses.Node{{Type: glasses.NodeIcon, Icon: "sun"},
			{Type: glasses.NodeText, Text: "beside"}}},
		{Type: glasses.NodeProgress, Value: 3},
		{Type: glasses.NodeList, Children: []glasses.Node{{Type: glasses.NodeText, Text: "an entry"},
			{Type: glasses.NodeButton, Text: "last"}}},
	}}
	tree.Direction = direction
	whole := map[string]int{}
	root := newScene(sc, glasses.View{Tree: &tree}).root
	pages := root.pages()
	for page := range pages {
		s := newScene(sc, glasses.View{Tree: &tree, Scroll: page * root.page()})
		if s.scroll() != page*root.page() {
			t.Fatalf("%s: page %d is at scroll position %d, want a multiple of the page", model, page, s.scroll())
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
			t.Errorf("%s: %s is completely on %d of %d pages, want 1", model, what, times, pages)
		}
	}
	if len(whole) < 12 || pages < 2 {
		t.Errorf("%s: %d lines on %d pages, want at least 12 on 2", model, len(whole), pages)
	}
}

func note(t *testing.T, whole map[string]int, what string, r, clip image.Rectangle) {
	switch seen := r.Intersect(clip); {
	case r.In(clip):
		whole[what]++
	case !seen.Empty():
		t.Errorf("%s is cut: only %v of %v is visible", what, seen, r)
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
				t.Errorf("%q: line %q is %d pixels wide, want at most %d", text, line, l.width, width)
			}
		}
		if strings.Join(got, "|") != strings.Join(want, "|") {
			t.Errorf("%q: got lines %q, want %q", text, got, want)
		}
	}
	p := newParagraph("narrow", f, typeset.Options{})
	if p.wrap(0); len(p.lines) != 6 {
		t.Errorf("without any width: got %d lines, want 6", len(p.lines))
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
				t.Errorf("%s: a line is %d pixels wide, want at most 488", style, l.width)
			}
		}
		if shown != 5 {
			t.Errorf("%s: %d lines are shown, want 5", style, shown)
		}
	}
}

func TestCachesAreBounded(t *testing.T) {
	for size := range 8 {
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
		t.Errorf("the caches hold %d glyphs and %d icons, more than allowed", len(glyphs.glyphs), len(iconCache.masks))
	}
}

// Thai has no spaces between words, and the renderer has no dictionary to find their boundaries.
func TestWrap_DividesThaiBetweenCharactersOnly(t *testing.T) {
	f := face{size: 20, line: 25}
	text := []rune("มนุษย์ทั้งปวงเกิดมามีอิสระและเสมอภาคกันในศักดิ์ศรีและสิทธิที่น้ำ")
	may := typeset.Divisions(text)
	p := newParagraph(string(text), f, typeset.Options{Auto: true})
	for w := f.size; w < p.natural; w++ {
		p.wrap(w)
		for i, l := range p.lines {
			at := 0
			for _, g := range p.glyphs[:l.from] {
				at += 1 + len(g.more)
			}
			if !may[at] {
				t.Fatalf("width %d: line %d begins within a character, with %q", w, i, string(text[at:]))
			}
			if units := countTrue(may[at:min(at+l.to-l.from, len(may))]); l.width > w && units > 1 {
				t.Fatalf("width %d: line %d is %d pixels wide, although it could be broken", w, i, l.width)
			}
		}
	}
}

// Plain text breaks where the annex allows it, too.
func TestWrap_BreaksPlainTextWhereTheAnnexAllows(t *testing.T) {
	for text, want := range map[string]string{
		"state-of-the-art":       "state-|of-|the-|art",
		"http://a.bc/defgh/ij":   "http://|a.bc/|defgh/|ij",
		"one\u200btwo":           "one\u200b|two",
		"a dash\u2014and a word": "a |dash|\u2014|and |a |word",
		"3.5-4.5 (or so)":        "3.5-4.5 |(or |so)",
	} {
		p := newParagraph(text, face{size: 20, line: 25}, typeset.Options{Auto: true})
		if p.places != nil {
			t.Fatalf("%q is not plain", text)
		}
		p.wrap(p.natural - 1)
		var got strings.Builder
		for i, g := range p.glyphs {
			if i > 0 && p.mayBegin(i) {
				got.WriteByte('|')
			}
			got.WriteRune(g.r)
		}
		if got.String() != want {
			t.Errorf("%q, want %q", got.String(), want)
		}
		for _, l := range p.lines[1:] {
			if !p.mayBegin(l.from) {
				t.Errorf("%q: a line begins with %q", text, text[l.from:])
			}
		}
	}
}
func countTrue(list []bool) (n int) {
	for _, is := range list {
		if is {
			n++
		}
	}
	return n
}
