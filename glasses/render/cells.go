package render

import (
	"encoding/binary"
	"slices"

	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/render/fonts"
	"github.com/service-dev/service/glasses/render/typeset"
)

// place describes one glyph of a text that is not plain: its direction and whether a line may begin with it.
type place struct {
	level, base uint8
	mayBegin    bool // a line may begin with the glyph
	mayDivide   bool // a line may begin with the glyph if no glyph of the previous line has mayBegin
}

// typesetText is a text after typesetting. It does not depend on the width and is immutable.
type typesetText struct {
	glyphs []*glyph
	places []place
}

// maxCellBytes is the maximum size of all cached cells, because a cell with many marks is large.
const maxCellBytes = 16 << 20

// maxTypesetRunes is the maximum size of the cache of typeset texts, in characters.
const maxTypesetRunes = 64 << 10

type typesetKey struct {
	typeset.Options
	size int
	text string
}

// isPlain reports whether a text needs no typesetting. This is the case if the primary font contains all its
// characters, and they run from left to right and do not affect each other. Its lines break at spaces.
func isPlain(gs []*glyph) bool {
	for _, g := range gs {
		if g.complex {
			return false
		}
	}
	return true
}

// isComplex reports whether a text with this character needs typesetting (see isPlain).
func isComplex(g *glyph) bool {
	return g.missing || g.r >= 0x300 && g.r < 0x370 || g.r == 0x61c || g.r >= 0x200c && g.r <= 0x200f ||
		g.r >= 0x202a && g.r <= 0x202e || g.r >= 0x2066 && g.r <= 0x2069 || g.r >= 0xfe00 && g.r <= 0xfe0f
}

// typeset returns the glyphs of a text that is not plain.
func (c *glyphCache) typeset(f face, text []rune, o typeset.Options) typesetText {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := typesetKey{o, f.size, string(text)}
	if t, ok := c.texts[key]; ok && c.fonts == fonts.Generation() {
		return t
	}
	if c.texts == nil || c.fonts != fonts.Generation() || c.runes+len(text) > maxTypesetRunes {
		if c.fonts != fonts.Generation() {
			c.cells, c.bytes = nil, 0 // cells keep the previous fonts in memory
		}
		c.texts, c.runes, c.fonts = map[typesetKey]typesetText{}, 0, fonts.Generation()
	}
	cells := c.setter.Cells(text, o)
	t := typesetText{make([]*glyph, len(cells)), make([]place, len(cells))}
	divisions := typeset.Divisions(text)
	for i, cell := range cells {
		t.places[i] = place{cell.Level, cell.Base, cell.Break, divisions[cell.From]}
	}
	for from := 0; from < len(cells); {
		to := from + 1
		for to < len(cells) && cells[to].Run == cells[from].Run {
			to++
		}
		c.run(f, text, cells[from:to], t.glyphs[from:to])
		from = to
	}
	c.texts[key] = t
	c.runes += len(text)
	return t
}

// run sets the glyphs of cells that were shaped together. Cells in fonts other than the primary one keep their exact
// distances, to a quarter of a pixel, so that joined letters meet. The primary font rounds each advance.
func (c *glyphCache) run(f face, text []rune, cells []typeset.Cell, into []*glyph) {
	exact, pen := 0, 0 // in 1/64 pixel; pen is rounded to 16/64
	for k := range cells {
		i := k
		if cells[k].Level%2 == 1 { // in drawing order
			i = len(cells) - 1 - k
		}
		cell := cells[i]
		chars := text[cell.From:cell.To]
		switch {
		case cell.Face == nil:
			into[i] = c.get(f, chars[0])
			continue
		case cell.Face.Primary:
			into[i] = c.cell(f, cell, chars, 0, (cell.Advance*f.size*64/cell.Face.Upem+32)>>6)
			continue
		}
		exact += cell.Advance * f.size * 64 / cell.Face.Upem
		next := (exact + 8) &^ 15
		start := (pen + 32) >> 6
		into[i] = c.cell(f, cell, chars, pen-start<<6, (next+32)>>6-start)
		pen = next
	}
}

// cellKey identifies a cell. signature consists of the cell's characters, glyphs and their positions.
type cellKey struct {
	size, phase, advance int
	face                 *fonts.Face
	signature            string
}

// cell returns the glyph of a cell, moved right by phase/64 pixels.
func (c *glyphCache) cell(f face, cell typeset.Cell, chars []rune, phase, advance int) *glyph {
	// Brackets are mirrored in text from right to left.
	if cell.Face.Primary && len(chars) == 1 && len(cell.Glyphs) == 1 && cell.Level%2 == 0 {
		return c.get(f, chars[0])
	}
	sign := []byte(string(chars))
	for _, g := range cell.Glyphs {
		sign = binary.AppendVarint(append(sign, 0), int64(g.ID))
		sign = binary.AppendVarint(binary.AppendVarint(sign, int64(g.X)), int64(g.Y))
	}
	key := cellKey{f.size, phase, advance, cell.Face, string(sign)}
	g := c.cells[key]
	if g == nil {
		g = &glyph{r: chars[0], more: slices.Clone(chars[1:]), advance: advance, font: cell.Face.Added}
		if cell.Face.Added == nil {
			g.left, g.top, g.mask = c.ras.glyph(c.outline(f.size, cell, phase))
		} else if !c.addedGlyph(g, f.size, cell, phase) {
			return boxOf(f, chars[0])
		}
		cost := len(g.pix) + len(sign) + 4*len(chars)
		if c.cells == nil || len(c.cells) >= maxGlyphs || c.bytes+cost > maxCellBytes {
			c.cells, c.bytes = map[cellKey]*glyph{}, 0
			c.texts, c.runes = map[typesetKey]typesetText{}, 0 // texts contain the same glyphs
		}
		c.cells[key] = g
		c.bytes += cost
	}
	return g
}

// outline returns the outlines of the glyphs of a cell.
func (c *glyphCache) outline(size int, cell typeset.Cell, phase int) sfnt.Segments {
	var all sfnt.Segments
	ppem := fixed.Int26_6(size << 6)
	for _, g := range cell.Glyphs {
		segments, err := cell.Face.Outlines.LoadGlyph(&c.buf, sfnt.GlyphIndex(g.ID), ppem, nil)
		if err != nil {
			continue // the glyph has no outline
		}
		dx := fixed.Int26_6(phase + g.X*size*64/cell.Face.Upem)
		dy := fixed.Int26_6(-g.Y * size * 64 / cell.Face.Upem)
		for _, s := range segments {
			for i := range s.Args {
				s.Args[i].X += dx
				s.Args[i].Y += dy
			}
			all = append(all, s)
		}
	}
	return all
}

// WantedFonts returns the names of the font files that this program lacks and needs to draw a view. The result is
// empty in programs that contain all font files.
func WantedFonts(m glasses.DeviceModel, v glasses.View) []string {
	laidOut(m, v) // laying out the view requests the fonts
	return fonts.Wanted()
}

// mayBegin reports whether a line may begin with glyph i. i must not be the first glyph of the text.
func (p *paragraph) mayBegin(i int) bool {
	if p.places != nil {
		return p.places[i].mayBegin
	}
	return p.breaks != nil && p.breaks[i]
}

// mayDivide reports whether a line may begin with glyph i if the previous line cannot end at a better place. i must not
// be the first glyph of the text.
func (p *paragraph) mayDivide(i int) bool { return p.places == nil || p.places[i].mayDivide }

// direct determines the order in which a line is drawn, from left to right (rule L2 of Unicode Standard Annex 9), and
// whether its paragraph runs from right to left.
func (p *paragraph) direct(l *textLine) {
	if p.places == nil || l.from == l.to {
		return
	}
	places := p.places[l.from:l.to]
	l.rtl = places[0].base%2 == 1
	top, lowestOdd := uint8(0), uint8(255)
	for _, at := range places {
		top = max(top, at.level)
		if at.level%2 == 1 {
			lowestOdd = min(lowestOdd, at.level)
		}
	}
	if lowestOdd == 255 {
		return
	}
	l.order = make([]int, len(places))
	for i := range l.order {
		l.order[i] = l.from + i
	}
	for level := top; level >= lowestOdd; level-- {
		for from := 0; from < len(places); from++ {
			to := from
			for to < len(places) && places[to].level >= level {
				to++
			}
			slices.Reverse(l.order[from:to])
			from = to
		}
	}
}
