package render

import (
	"image"
	"unicode"

	"github.com/service-dev/service/proto/glasses"
)

// paragraph is a text in a face. Its lines depend on the width that it gets.
type paragraph struct {
	face    face
	glyphs  []*glyph
	natural int // width of the widest line when none is wrapped, in pixels
	lines   []textLine
}

// textLine is glyphs[from:to] of its paragraph. top is from the top of the node.
type textLine struct {
	from, to, width, top int
}

// zeroWidth tells of characters that take no place of their own.
func zeroWidth(r rune) bool { return unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) }

func newParagraph(text string, f face) *paragraph {
	runes := make([]rune, 0, len(text))
	for _, r := range text {
		switch {
		case r == '\t':
			runes = append(runes, ' ', ' ')
		case r == '\u2028' || r == '\u2029':
			runes = append(runes, '\n')
		case r != '\n' && unicode.IsControl(r): // \r and what else has no shape
		default:
			runes = append(runes, r)
		}
	}
	p := &paragraph{face: f, glyphs: glyphs.of(f, runes)}
	for from := 0; from <= len(p.glyphs); {
		to := from
		for to < len(p.glyphs) && p.glyphs[to].r != '\n' {
			to++
		}
		p.natural = max(p.natural, p.trimmed(from, to).width)
		from = to + 1
	}
	return p
}

// trimmed is the line from:to without the spaces at its end.
func (p *paragraph) trimmed(from, to int) textLine {
	for to > from && p.glyphs[to-1].r == ' ' {
		to--
	}
	l := textLine{from: from, to: to}
	for _, g := range p.glyphs[from:to] {
		l.width += g.advance
	}
	return l
}

// wrap breaks the text into lines of at most w pixels, at spaces where it can, within words where it must. A glyph that is
// wider than w has a line of its own.
func (p *paragraph) wrap(w int) {
	p.lines = p.lines[:0]
	from, space, width := 0, -1, 0
	for i := 0; i < len(p.glyphs); i++ {
		g := p.glyphs[i]
		switch {
		case g.r == '\n':
			p.add(from, i)
			from, space, width = i+1, -1, 0
			continue
		case g.r == ' ':
			space = i
		case width+g.advance > w && i > from && g.advance > 0:
			next := i
			if space >= from {
				next = space + 1
			}
			p.add(from, next)
			from, space, width = next, -1, 0
			i = next - 1
			continue
		}
		width += g.advance
	}
	p.add(from, len(p.glyphs))
}

func (p *paragraph) add(from, to int) {
	l := p.trimmed(from, to)
	l.top = len(p.lines) * p.face.line
	p.lines = append(p.lines, l)
}

// height of the wrapped text.
func (p *paragraph) height() int { return len(p.lines) * p.face.line }

// paragraph paints the text of a text node or a button. A line of which a quarter or more is cut off at the bottom is left
// out, but for scrollers, where it tells of more.
func (c *canvas) paragraph(b *box, r, clip image.Rectangle, ink rgb) {
	p := b.text
	in := image.Rect(r.Min.X+b.padX, r.Min.Y+b.padY, r.Max.X-b.padX, r.Max.Y-b.padY)
	for _, l := range p.lines {
		x := in.Min.X
		switch b.align {
		case glasses.AlignCenter:
			x += (in.Dx() - l.width) / 2
		case glasses.AlignEnd:
			x += in.Dx() - l.width
		}
		y := in.Min.Y + l.top
		if y+p.face.line < clip.Min.Y || y >= clip.Max.Y || y+p.face.line*3/4 > clip.Max.Y && !b.scrolled() {
			continue
		}
		c.line(p.glyphs[l.from:l.to], x, y, p.face, clip, ink)
	}
}

// line paints glyphs from x on, in a line whose top is y. What of a glyph is higher or lower than its line is clipped only
// by clip.
func (c *canvas) line(gs []*glyph, x, y int, f face, clip image.Rectangle, ink rgb) {
	base := y + (100*f.line-115*f.size)/200 + 94*f.size/100
	for _, g := range gs {
		left := x + g.left
		if g.advance == 0 && g.left >= 0 { // a mark that expects to be drawn over what is before it
			left -= g.w
		}
		if g.w > 0 {
			c.stamp(&g.mask, left, base+g.top, clip, ink)
		}
		x += g.advance
	}
}
