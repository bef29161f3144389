package render

import (
	"slices"

	"golang.org/x/image/font/sfnt"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/render/fonts"
	"github.com/service-dev/service/glasses/render/typeset"
)

// maxAddedArea is the maximum area of a cell in square ems. The tables of an added font may place glyphs anywhere.
const maxAddedArea = 16

// addedGlyph sets the mask of a cell of an added font. It returns false if the cell cannot be drawn.
func (c *glyphCache) addedGlyph(g *glyph, size int, cell typeset.Cell, phase int) (ok bool) {
	defer func() {
		if r := recover(); r != nil {
			fonts.Drop(cell.Face, r)
			c.buf, ok = sfnt.Buffer{}, false
		}
	}()
	outline := c.outline(size, cell, phase)
	b := outline.Bounds()
	if w, h := int(b.Max.X-b.Min.X+63)>>6, int(b.Max.Y-b.Min.Y+63)>>6; w*h > maxAddedArea*size*size {
		return false
	}
	g.left, g.top, g.mask = c.ras.glyph(outline)
	return true
}

// cube adds a cubic curve.
func (z *rasteriser) cube(a, b, c, d [2]int) {
	const n = 2 * curveSteps
	pen := a
	for i := 1; i <= n; i++ {
		j := n - i
		var p [2]int
		for k := range p {
			p[k] = (j*j*j*a[k] + 3*i*j*j*b[k] + 3*i*i*j*c[k] + i*i*i*d[k] + n*n*n/2) / (n * n * n)
		}
		z.line(pen, p)
		pen = p
	}
}

// AddedFonts returns the added fonts that the texts of a view use, in order of first use.
func AddedFonts(m glasses.DeviceModel, v glasses.View) []fonts.Added {
	s, ok := laidOut(m, v)
	if !ok || s.root == nil || m.WithoutAddedFonts {
		return nil
	}
	var list []fonts.Added
	var visit func(b *box)
	visit = func(b *box) {
		if b.text != nil {
			for _, g := range b.text.glyphs {
				if g.font != nil && !slices.Contains(list, *g.font) {
					list = append(list, *g.font)
				}
			}
		}
		for _, k := range b.kids {
			visit(k)
		}
	}
	visit(s.root)
	return list
}
