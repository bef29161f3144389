package typeset

import (
	"unicode"

	"github.com/go-text/typesetting/language"
	"golang.org/x/text/unicode/bidi"

	"github.com/service-dev/service/glasses/render/fonts"
)

// item is a part of a paragraph that is shaped in one call. Its characters have the same level, script and font.
type item struct {
	from, to int
	level    uint8
	script   language.Script
	face     *fonts.Face
}

// FirstLetter reports whether the first letter of a text runs from right to left (rules P2, P3), and whether the text
// contains a letter.
func FirstLetter(text []rune) (rtl, found bool) {
	isolates := 0
	for _, r := range text {
		switch c := classOf(r); {
		case c == bidi.LRI || c == bidi.RLI || c == bidi.FSI: // isolates and their content are skipped
			isolates++
		case c == bidi.PDI:
			isolates = max(isolates-1, 0)
		case isolates > 0:
		case c == bidi.L:
			return false, true
		case c == bidi.R || c == bidi.AL:
			return true, true
		}
	}
	return false, false
}

func classOf(r rune) bidi.Class {
	p, _ := bidi.LookupRune(r)
	return p.Class()
}

// isSeparator reports whether a character separates paragraphs.
func isSeparator(r rune) bool { return classOf(r) == bidi.B }

// itemise splits the paragraph into items.
func (t *Typesetter) itemise(levels []uint8) {
	t.items = t.items[:0]
	script := firstScript(t.text)
	t.lines.Init(t.text)
	for graphemes := t.lines.GraphemeIterator(); graphemes.Next(); {
		g := graphemes.Grapheme()
		if own := language.LookupScript(g.Text[0]); own.Strong() && own != language.Unknown {
			script = own
		}
		from, to := g.Offset, g.Offset+len(g.Text)
		level := levels[from]
		if f := t.faceOf(g.Text, from, script); f != nil {
			t.add(item{from, to, level, script, f})
			continue
		}
		for i := from; i < to; i++ { // report exactly the character that is missing
			t.add(item{i, i + 1, level, script, t.faceOf(t.text[i:i+1], i, script)})
		}
	}
}

func (t *Typesetter) add(it item) {
	if n := len(t.items); n > 0 {
		last := &t.items[n-1]
		if last.level == it.level && last.script == it.script && last.face == it.face {
			last.to = it.to
			return
		}
	}
	t.items = append(t.items, it)
}

// firstScript returns the script of the first character that has one.
func firstScript(text []rune) language.Script {
	for _, r := range text {
		if s := language.LookupScript(r); s.Strong() && s != language.Unknown {
			return s
		}
	}
	return language.Latin
}

// faceOf returns the best font that contains a character with its marks, or nil if there is none. from is the
// position of the character in the text.
func (t *Typesetter) faceOf(grapheme []rune, from int, script language.Script) *fonts.Face {
	asEmoji := len(grapheme) > 1 && grapheme[1] == '\ufe0f'
	if f := fonts.Primary(t.options.Bold); !asEmoji && t.has(f, grapheme, from, script) {
		return f
	}
	for f := range fonts.Fallbacks(grapheme[0], script, t.region, t.options.Bold, asEmoji) {
		if t.has(f, grapheme, from, script) {
			return f
		}
	}
	return t.addedFace(grapheme, from, script)
}

// has reports whether a font contains a character with its marks, possibly as one composed character.
func (t *Typesetter) has(f *fonts.Face, grapheme []rune, from int, script language.Script) bool {
	missing := 0
	for _, r := range grapheme {
		if !f.Has(r) && !IsInvisible(r) {
			missing++
		}
	}
	if missing == 0 {
		return true
	}
	if len(grapheme) == 1 || len(grapheme) > maxCellGlyphs {
		return false
	}
	b := t.glyphs(item{from: from, to: from + len(grapheme), script: script, face: f})
	for _, g := range b.Info {
		if g.Glyph == 0 {
			return false
		}
	}
	return true
}

// IsInvisible reports whether a character can be omitted if a font lacks it. This applies to joiners, directional marks
// and variation selectors, but not to combining marks.
func IsInvisible(r rune) bool {
	return unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}
