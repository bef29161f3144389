// Package render draws a display tree on the panel of a device model, identical to the pixel on every platform,
// natively or as WebAssembly in a browser. It uses only integer arithmetic, does no I/O and uses no clock. It is
// independent of sessions, transports and its callers.
package render

import (
	"image"

	"github.com/service-dev/service/glasses"
)

// maxSide is the maximum length of a panel's sides in pixels. A model with a larger panel is treated as having no
// panel.
const maxSide = 4096

// Draw returns the panel of m showing v, in the size and colours of the panel. Pixels are opaque. Pixels outside a
// round panel are black. It returns nil for a model without a panel.
func Draw(m glasses.DeviceModel, v glasses.View) *image.NRGBA { return DrawOver(nil, m, v) }

// DrawOver is like Draw, but draws over an earlier picture of the panel's size instead of allocating a new one.
func DrawOver(img *image.NRGBA, m glasses.DeviceModel, v glasses.View) *image.NRGBA {
	sc, ok := newScreen(m)
	if !ok {
		return nil
	}
	if size := image.Rect(0, 0, m.Panel.Width, m.Panel.Height); img == nil || img.Rect != size {
		img = image.NewNRGBA(size)
	}
	copy(img.Pix, []byte{0, 0, 0, 0xff})
	for n := 4; n < len(img.Pix); n *= 2 {
		copy(img.Pix[n:], img.Pix[:n])
	}
	s := newScene(sc, v)
	s.paintOn(&canvas{img: img, q: sc.quantiser, pixels: maxPixels})
	s.finish(img)
	if m.Panel.Shape == glasses.ShapeRound {
		maskRound(img)
	}
	return img
}

// paintOn paints the part of the panel that c covers. The caller must then call finish, which rounds the colours.
func (s *scene) paintOn(c *canvas) {
	s.walk(func(b *box, r, clip image.Rectangle) {
		if r.Overlaps(clip) {
			c.node(s, b, r, s.paintClip(r, clip))
		}
	})
	s.painted += c.painted
}

// paintClip returns the part of the panel that a box at r paints. It includes glyphs that extend beyond their line.
func (s *scene) paintClip(r, clip image.Rectangle) image.Rectangle {
	return clip.Intersect(r.Inset(-s.body.size))
}

// canvas paints the picture of a panel in the panel's colours (see quantiser).
type canvas struct {
	img *image.NRGBA
	q   quantiser
	// pixels is how many more pixels of pictures may be decoded.
	pixels int
	// traces records which texts affect each pixel, unless it is nil. It has the same rectangle as img. text is the
	// text being painted, or nil while other parts are painted.
	traces *traces
	text   *box
	// owners records which graphic painted each pixel last, unless it is nil. graphic is the one being painted, or nil
	// while other parts are painted.
	owners  *owners
	graphic *ownedPixels
	// painted is the number of pixels that were painted.
	painted int
}

// node paints one box. r is the box's place on the panel. clip is the part that may be painted.
func (c *canvas) node(s *scene, b *box, r, clip image.Rectangle) {
	focused := b.target >= 0 && b.target == s.focus
	ink := c.q.ink(b.n.Colour)
	if c.owners != nil && isGraphic(b.n) {
		c.graphic = c.owners.begin(b)
		defer func() { c.graphic = nil }()
	}
	switch b.n.Type {
	case glasses.NodeText:
		c.paragraph(b, r, clip, ink)
	case glasses.NodeImage:
		c.picture(b, r, clip, ink)
	case glasses.NodeIcon:
		c.icon(s, b, r, clip, ink)
	case glasses.NodeButton:
		c.button(s, b, r, clip, ink, focused)
	case glasses.NodeProgress:
		c.progress(s, b, r, clip, ink)
	case glasses.NodeColumn, glasses.NodeRow, glasses.NodeList:
		c.mark(s, b, r, clip, c.q.ink(""))
	default:
		c.frame(r, clip, s.border, ink)
	}
	if focused && b.n.Type != glasses.NodeButton {
		c.frame(r, clip, s.focusEdge, ink)
	}
}

func (c *canvas) button(s *scene, b *box, r, clip image.Rectangle, ink rgb, focused bool) {
	if focused {
		c.fill(r, clip, ink)
		ink = rgb{}
	} else {
		c.frame(r, clip, s.border, ink)
	}
	c.paragraph(b, r, clip, ink)
}

func (c *canvas) progress(s *scene, b *box, r, clip image.Rectangle, ink rgb) {
	c.frame(r, clip, s.border, ink)
	in := r.Inset(2 * s.border)
	w := in.Dx() * min(max(b.n.Value, 0), 100) / 100
	in.Min.X = b.across(in, 0, w)
	in.Max.X = in.Min.X + w
	c.fill(in, clip, ink)
}

// mark paints the indicator of a scroller with hidden content, which is a thin bar or the position among the pages.
func (c *canvas) mark(s *scene, b *box, r, clip image.Rectangle, ink rgb) {
	limit := b.limit()
	if b.n.Overflow != glasses.OverflowScroll && b.n.Overflow != glasses.OverflowPaginate || limit == 0 {
		return
	}
	in := b.inner(r)
	strip := b.indicator(in)
	if b.n.Overflow == glasses.OverflowScroll {
		strip = b.edge(strip, s.dot/2)
		length := max(in.Dy()*in.Dy()/b.content, s.dot)
		strip.Min.Y += (in.Dy() - length) * b.offset / limit
		strip.Max.Y = strip.Min.Y + length
		c.fill(strip, clip, ink)
		return
	}
	page, pages := b.offset/max(in.Dy(), 1), b.pages()
	if b.pageLabel {
		p := pageLabel(s, page, pages)
		at := image.Pt(b.edge(strip, p.natural).Min.X, strip.Max.Y-p.face.line)
		c.line(p, textLine{to: len(p.glyphs)}, at, clip, ink)
		return
	}
	step := 2 * s.dot
	y := strip.Min.Y + (strip.Dy()-(step*pages-s.dot))/2
	for i := range pages {
		dot := b.edge(strip, s.dot)
		dot.Min.Y, dot.Max.Y = y+i*step, y+i*step+s.dot
		if i == page {
			c.fill(dot, clip, ink)
		} else {
			c.frame(dot, clip, 1, ink)
		}
	}
}

// fill paints a rectangle.
func (c *canvas) fill(r, clip image.Rectangle, ink rgb) {
	r = r.Intersect(clip).Intersect(c.img.Rect)
	for y := r.Min.Y; y < r.Max.Y; y++ {
		row := c.img.Pix[c.img.PixOffset(r.Min.X, y):]
		for i := 0; i < 4*r.Dx(); i += 4 {
			if c.owners != nil {
				c.changes(r.Min.X+i/4, y, rgb(row[i:]), ink)
			}
			row[i], row[i+1], row[i+2] = ink[0], ink[1], ink[2]
		}
	}
	c.painted += r.Dx() * r.Dy()
	if c.traces != nil {
		c.traces.cover(r)
	}
}

// frame paints the outline of a rectangle, w pixels wide.
func (c *canvas) frame(r, clip image.Rectangle, w int, ink rgb) {
	for _, e := range frameEdges(r, w) {
		c.fill(e, clip, ink)
	}
}

// frameEdges returns the four edges of an outline, w pixels wide. The corners belong to the upper and lower edges.
func frameEdges(r image.Rectangle, w int) [4]image.Rectangle {
	w = min(w, (r.Dx()+1)/2, (r.Dy()+1)/2)
	return [4]image.Rectangle{
		{Min: image.Pt(r.Min.X, r.Min.Y), Max: image.Pt(r.Max.X, r.Min.Y+w)},
		{Min: image.Pt(r.Min.X, r.Max.Y-w), Max: image.Pt(r.Max.X, r.Max.Y)},
		{Min: image.Pt(r.Min.X, r.Min.Y+w), Max: image.Pt(r.Min.X+w, r.Max.Y-w)},
		{Min: image.Pt(r.Max.X-w, r.Min.Y+w), Max: image.Pt(r.Max.X, r.Max.Y-w)},
	}
}

// stamp paints ink through the mask m, whose top left pixel is at x, y.
func (c *canvas) stamp(m *mask, x, y int, clip image.Rectangle, ink rgb) {
	r := image.Rect(x, y, x+m.w, y+m.h).Intersect(clip).Intersect(c.img.Rect)
	for py := r.Min.Y; py < r.Max.Y; py++ {
		cover := m.pix[(py-y)*m.w+r.Min.X-x:]
		row := c.img.Pix[c.img.PixOffset(r.Min.X, py):]
		for i := range r.Dx() {
			switch a := c.q.cover(cover[i]); {
			case a == 0:
			case c.traces != nil:
				c.painted += c.traces.mix(r.Min.X+i, py, row[4*i:], c.text, func(px []byte) { blend(px, ink, a) })
			default:
				c.painted++
				before := rgb(row[4*i:])
				blend(row[4*i:], ink, a)
				if c.owners != nil {
					c.changes(r.Min.X+i, py, before, rgb(row[4*i:]))
				}
			}
		}
	}
}

// changes notes that the colour of the pixel x, y changes. The canvas has owners.
func (c *canvas) changes(x, y int, before, after rgb) {
	if c.q.shown(before) != c.q.shown(after) {
		c.owners.take(x, y, c.graphic)
	}
}

// blend mixes ink into a pixel with an opacity of a/255.
func blend(px []byte, ink rgb, a uint8) {
	for k := range 3 {
		px[k] = uint8((int(px[k])*(255-int(a)) + int(ink[k])*int(a) + 127) / 255)
	}
}

// maskRound makes the pixels outside the inscribed circle black.
func maskRound(img *image.NRGBA) {
	w, h := img.Rect.Dx(), img.Rect.Dy()
	side := min(w, h)
	for y := range h {
		for x := range w {
			dx, dy := 2*x+1-w, 2*y+1-h // twice the distance from the centre
			if dx*dx+dy*dy > side*side {
				copy(img.Pix[img.PixOffset(x, y):], []byte{0, 0, 0, 0xff})
			}
		}
	}
}
