package render

import (
	"image"
	"iter"
	"slices"
	"sort"
	"unicode"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/render/typeset"
)

// paragraph is a text in one face. Its lines depend on the available width.
type paragraph struct {
	face    face
	glyphs  []*glyph
	places  []place // one per glyph; nil for a plain text
	breaks  []bool  // for each glyph of a plain text that does not fit in one line, whether a line may begin with it
	natural int     // width of the widest line without wrapping, in pixels
	lines   []textLine
}

// textLine consists of glyphs[from:to] of its paragraph. top is relative to the top of the node.
type textLine struct {
	from, to, width, top int
	order                []int // indexes of the glyphs from left to right; nil means from..to in order
	rtl                  bool  // the line starts on the right
}

// zeroWidth reports whether a character takes up no width.
func zeroWidth(r rune) bool { return unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) }

func newParagraph(text string, f face, o typeset.Options) *paragraph {
	runes := make([]rune, 0, len(text))
	for _, r := range text {
		switch {
		case r == '\t':
			runes = append(runes, ' ', ' ')
		case r == '\u2028' || r == '\u2029':
			runes = append(runes, '\n')
		case r != '\n' && unicode.IsControl(r): // \r and other characters without a glyph
		default:
			runes = append(runes, r)
		}
	}
	p := &paragraph{face: f, glyphs: glyphs.of(f, runes)}
	if o.Bold = f.bold; o.RTL || !isPlain(p.glyphs) {
		t := glyphs.typeset(f, runes, o)
		p.glyphs, p.places = t.glyphs, t.places
	}
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

// trimmed returns the line from:to without trailing spaces.
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

// wrap breaks the text into lines of at most w pixels, between words if possible, and otherwise between characters with
// their marks. A character wider than w is placed on a separate line.
func (p *paragraph) wrap(w int) {
	p.lines = p.lines[:0]
	p.findBreaks(w)
	from, next, division, width := 0, 0, 0, 0 // the next line may begin at next or division
	for i := 0; i < len(p.glyphs); i++ {
		g := p.glyphs[i]
		if g.r == '\n' {
			p.add(from, i)
			from, width = i+1, 0
			continue
		}
		if i > from && p.mayBegin(i) {
			next = i
		}
		if i > from && p.mayDivide(i) {
			division = i
		}
		if end := max(next, from); g.r != ' ' && width+g.advance > w && g.advance > 0 && (end > from || division > from) {
			if end == from {
				end = division
			}
			p.add(from, end)
			from, width, i = end, 0, end-1
			continue
		}
		width += g.advance
	}
	p.add(from, len(p.glyphs))
}

// findBreaks finds where the lines of a plain text may begin. It does nothing if the text fits in w pixels.
func (p *paragraph) findBreaks(w int) {
	if p.places != nil || p.breaks != nil || p.natural <= w {
		return
	}
	text := make([]rune, len(p.glyphs))
	for i, g := range p.glyphs {
		text[i] = g.r
	}
	p.breaks = typeset.Breaks(text)
}

func (p *paragraph) add(from, to int) {
	l := p.trimmed(from, to)
	l.top = len(p.lines) * p.face.line
	p.direct(&l)
	p.lines = append(p.lines, l)
}

// height returns the height of the wrapped text.
func (p *paragraph) height() int { return len(p.lines) * p.face.line }

// paragraph paints the text of a text node or a button.
func (c *canvas) paragraph(b *box, r, clip image.Rectangle, ink rgb) {
	c.text = b
	defer func() { c.text = nil }()
	p := b.text
	least := c.q.leastCover()
	for i := p.firstBelow(clip.Min.Y - r.Min.Y - b.padY); i < len(p.lines); i++ {
		if r.Min.Y+b.padY+p.lines[i].top >= clip.Max.Y {
			return
		}
		if at, ok := b.lineAt(p.lines[i], r, clip, least); ok {
			c.line(p, p.lines[i], at, clip, ink)
		}
	}
}

// firstBelow returns the index of the first line that ends at y or below. y is relative to the first line.
func (p *paragraph) firstBelow(y int) int {
	return sort.Search(len(p.lines), func(i int) bool { return p.lines[i].top+p.face.line >= y })
}

// lineAt returns the top left corner of line l of box b drawn at r. ok is false if l is not drawn: outside scrollers, a
// line is omitted if a quarter or more of it is cut off at the bottom. A scroller draws such a line, as a hint that
// there is more content. lineAt moves a line if that prevents parts beyond its edges, such as the tail of a j, from
// being cut. least is the minimum coverage of a pixel that the panel shows.
func (b *box) lineAt(l textLine, r, clip image.Rectangle, least uint8) (image.Point, bool) {
	p := b.text
	in := image.Rect(r.Min.X+b.padX, r.Min.Y+b.padY, r.Max.X-b.padX, r.Max.Y-b.padY)
	at := image.Pt(in.Min.X, in.Min.Y+l.top)
	switch {
	case b.align == glasses.AlignCenter:
		at.X += (in.Dx() - l.width) / 2
	case (b.align == glasses.AlignEnd) != l.rtl:
		at.X += in.Dx() - l.width
	}
	place := image.Rect(at.X, at.Y, at.X+l.width, at.Y+p.face.line)
	if place.Max.Y < clip.Min.Y || place.Min.Y >= clip.Max.Y ||
		place.Min.Y+p.face.line*3/4 > clip.Max.Y && !b.scrolled() {
		return at, false
	}
	if p.reach(l).Add(at).In(clip) || l.width == 0 {
		return at, true
	}
	ink := p.inkOf(l, least).Add(at)
	at.X += moveInside(ink.Min.X, ink.Max.X, place.Min.X, place.Max.X, clip.Min.X, clip.Max.X)
	dy := moveInside(ink.Min.Y, ink.Max.Y, place.Min.Y, place.Max.Y, clip.Min.Y, clip.Max.Y)
	at.Y += min(max(dy, -p.face.maxShift()), p.face.maxShift())
	return at, true
}

// maxShift returns how far a line may be moved up or down, in pixels. The marks of every script need less. A letter
// with a tall stack of marks stays on its line, and the marks are cut.
func (f face) maxShift() int { return f.line / 6 }

// moveInside returns how far to move the ink from..to so that it is within low..high. It returns 0 if there is not
// enough space, or if the line first..last is not within low..high.
func moveInside(from, to, first, last, low, high int) int {
	switch {
	case first < low || last > high || to-from > high-low:
		return 0
	case from < low:
		return low - from
	case to > high:
		return high - to
	}
	return 0
}

// baseline returns the distance from the top of a line to its baseline.
func (f face) baseline() int { return (100*f.line-115*f.size)/200 + 94*f.size/100 }

// line paints line l of p with its top left corner at the point at. Parts of glyphs beyond the line are
// clipped only by clip.
func (c *canvas) line(p *paragraph, l textLine, at image.Point, clip image.Rectangle, ink rgb) {
	for g, offset := range p.masks(l) {
		c.stamp(&g.mask, at.X+offset.X, at.Y+offset.Y, clip, ink)
	}
}

// masks yields the glyphs of a line that have pixels, from left to right. The point is the top left corner of the mask
// relative to the top left corner of the line.
func (p *paragraph) masks(l textLine) iter.Seq2[*glyph, image.Point] {
	return func(yield func(*glyph, image.Point) bool) {
		base, x := p.face.baseline(), 0
		for i := l.from; i < l.to; i++ {
			g := p.glyphs[i]
			if l.order != nil {
				g = p.glyphs[l.order[i-l.from]]
			}
			left := x + g.left
			if g.advance == 0 && g.left >= 0 { // a combining mark, drawn over the preceding glyph
				left -= g.w
			}
			if g.w > 0 && !yield(g, image.Pt(left, base+g.top)) {
				return
			}
			x += g.advance
		}
	}
}

// reach returns a rectangle that contains every pixel of a line, relative to the top left corner of the line.
func (p *paragraph) reach(l textLine) image.Rectangle {
	var all image.Rectangle
	for g, at := range p.masks(l) {
		all = all.Union(image.Rect(at.X, at.Y, at.X+g.w, at.Y+g.h))
	}
	return all
}

// inkOf returns the smallest rectangle that contains all pixels of a line with a coverage of at least least, relative
// to the top left corner of the line.
func (p *paragraph) inkOf(l textLine, least uint8) image.Rectangle {
	var all image.Rectangle
	for g, at := range p.masks(l) {
		if all.Empty() || !image.Rect(at.X, at.Y, at.X+g.w, at.Y+g.h).In(all) {
			all = all.Union(g.ink(least).Add(at))
		}
	}
	return all
}

// ink returns the smallest rectangle that contains all pixels of a mask with a coverage of at least least.
func (m *mask) ink(least uint8) image.Rectangle {
	var all image.Rectangle
	for y := range m.h {
		row := m.pix[y*m.w:][:m.w]
		from := slices.IndexFunc(row, func(a uint8) bool { return a >= least })
		if from < 0 {
			continue
		}
		to := len(row)
		for row[to-1] < least {
			to--
		}
		all = all.Union(image.Rect(from, y, to, y+1))
	}
	return all
}
