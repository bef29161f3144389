package render

import (
	"slices"

	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
)

// rasteriser converts outlines to masks using only integers. The package x/image/vector uses float32, which may round
// curves differently on processors that fuse multiplication and addition.
type rasteriser struct {
	edges     []edge  // ordered by upper end, the highest first
	active    []*edge // edges that may cross the current row
	crossings []crossing
	cover     []int32
}

// edge runs down from y0 to y1, in 1/64 pixel. wind is +1, or -1 if the outline runs up.
type edge struct{ x0, y0, x1, y1, wind int }

type crossing struct{ x, wind int }

const (
	subLines   = 16 // sampled lines per pixel of height
	curveSteps = 8  // straight pieces per curve
)

// glyph fills an outline using the non-zero rule. left and top are the position of the mask relative to the origin of
// the outline.
func (z *rasteriser) glyph(segments sfnt.Segments) (left, top int, m mask) {
	bounds := segments.Bounds()
	left, top = bounds.Min.X.Floor(), bounds.Min.Y.Floor()
	m.w, m.h = bounds.Max.X.Ceil()-left, bounds.Max.Y.Ceil()-top
	if m.w <= 0 || m.h <= 0 {
		return 0, 0, mask{}
	}
	z.outline(segments, left<<6, top<<6)
	slices.SortFunc(z.edges, func(a, b edge) int { return a.y0 - b.y0 })
	below := z.edges
	z.active = z.active[:0]
	m.pix = make([]uint8, m.w*m.h)
	for y := range m.h {
		z.active = slices.DeleteFunc(z.active, func(e *edge) bool { return e.y1 <= y<<6 })
		for len(below) > 0 && below[0].y0 < (y+1)<<6 {
			z.active = append(z.active, &below[0])
			below = below[1:]
		}
		z.row(y, m.w, m.pix[y*m.w:(y+1)*m.w])
	}
	return left, top, m
}

// outline collects the edges of segments, moved by -dx, -dy. The service's fonts have only quadratic curves.
func (z *rasteriser) outline(segments sfnt.Segments, dx, dy int) {
	z.edges = z.edges[:0]
	var first, pen [2]int
	at := func(p fixed.Point26_6) [2]int { return [2]int{int(p.X) - dx, int(p.Y) - dy} }
	for _, s := range segments {
		switch s.Op {
		case sfnt.SegmentOpMoveTo:
			z.line(pen, first)
			first = at(s.Args[0])
			pen = first
		case sfnt.SegmentOpLineTo:
			p := at(s.Args[0])
			z.line(pen, p)
			pen = p
		case sfnt.SegmentOpQuadTo:
			a, b, c := pen, at(s.Args[0]), at(s.Args[1])
			for i := 1; i <= curveSteps; i++ {
				j := curveSteps - i
				var p [2]int
				for k := range p {
					p[k] = (j*j*a[k] + 2*i*j*b[k] + i*i*c[k] + curveSteps*curveSteps/2) >> 6
				}
				z.line(pen, p)
				pen = p
			}
		case sfnt.SegmentOpCubeTo: // only in added fonts
			z.cube(pen, at(s.Args[0]), at(s.Args[1]), at(s.Args[2]))
			pen = at(s.Args[2])
		}
	}
	z.line(pen, first)
}

func (z *rasteriser) line(a, b [2]int) {
	switch {
	case a[1] < b[1]:
		z.edges = append(z.edges, edge{a[0], a[1], b[0], b[1], 1})
	case a[1] > b[1]:
		z.edges = append(z.edges, edge{b[0], b[1], a[0], a[1], -1})
	}
}

// row computes the coverage of one row of pixels.
func (z *rasteriser) row(y, w int, into []uint8) {
	z.cover = append(z.cover[:0], make([]int32, w)...)
	for sub := range subLines {
		z.cross(y<<6 + sub*64/subLines + 32/subLines)
		wind := 0
		for i, c := range z.crossings {
			if wind != 0 {
				z.span(z.crossings[i-1].x, c.x, w)
			}
			wind += c.wind
		}
	}
	for x, c := range z.cover {
		into[x] = uint8((int(c)*255 + 32*subLines) / (64 * subLines))
	}
}

// cross collects the points at which the line at y crosses the active edges, from left to right.
func (z *rasteriser) cross(y int) {
	z.crossings = z.crossings[:0]
	for _, e := range z.active {
		if e.y0 <= y && y < e.y1 {
			z.crossings = append(z.crossings, crossing{e.x0 + (e.x1-e.x0)*(y-e.y0)/(e.y1-e.y0), e.wind})
		}
	}
	slices.SortFunc(z.crossings, func(a, b crossing) int { return a.x - b.x })
}

// span adds the coverage between two positions on a line, in 1/64 pixel.
func (z *rasteriser) span(from, to, w int) {
	from, to = max(from, 0), min(to, w<<6)
	for x := from >> 6; x<<6 < to; x++ {
		z.cover[x] += int32(min(to, (x+1)<<6) - max(from, x<<6))
	}
}
