// Package render draws a display tree on the panel of a device model, to the pixel alike on every platform: whoever
// simulates glasses, natively or as WebAssembly in a browser, shows and measures with it. It counts in integers only, has
// no I/O and no clock, and must not know sessions, transports or who asks.
package render

import (
	"image"

	"github.com/service-dev/service/proto/glasses"
)

// maxSide bounds the panels that are drawn, in pixels; a model that says more has no panel here.
const maxSide = 4096

// Draw gives the panel of m as it shows v, in exactly the panel's size and with the colours that the panel has. Pixels are
// opaque; those outside a round panel are black. It is nil for a model without panel.
func Draw(m glasses.DeviceModel, v glasses.View) *image.NRGBA {
	sc, ok := newScreen(m)
	if !ok {
		return nil
	}
	img := image.NewNRGBA(image.Rect(0, 0, m.Panel.Width, m.Panel.Height))
	for i := 3; i < len(img.Pix); i += 4 {
		img.Pix[i] = 0xff
	}
	s := newScene(sc, v)
	c := canvas{img: img, q: sc.quantiser, pixels: maxPixels}
	s.walk(func(b *box, r, clip image.Rectangle) {
		if r.Overlaps(clip) {
			c.node(s, b, r, clip.Intersect(r.Inset(-s.body.size))) // room for what a glyph has beyond its line
		}
	})
	sc.finish(img)
	if m.Panel.Shape == glasses.ShapeRound {
		maskRound(img)
	}
	return img
}

// canvas paints on a panel's picture. The colours that it takes are the panel's own (see quantiser).
type canvas struct {
	img *image.NRGBA
	q   quantiser
	// pixels of pictures that may still be decoded.
	pixels int
}

// node paints one box: r is where it is on the panel, clip what may be painted.
func (c *canvas) node(s *scene, b *box, r, clip image.Rectangle) {
	focused := b.target >= 0 && b.target == s.focus
	ink := c.q.ink(b.n.Colour)
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
	in.Max.X = in.Min.X + in.Dx()*min(max(b.n.Value, 0), 100)/100
	c.fill(in, clip, ink)
}

// mark paints what tells of content beyond the edges of a scroller: a thin bar, or where among the pages it stands.
func (c *canvas) mark(s *scene, b *box, r, clip image.Rectangle, ink rgb) {
	limit := b.limit()
	if b.n.Overflow != glasses.OverflowScroll && b.n.Overflow != glasses.OverflowPaginate || limit == 0 {
		return
	}
	in := b.inner(r)
	strip := image.Rect(in.Max.X, in.Min.Y, in.Max.X+b.strip, in.Max.Y)
	if b.n.Overflow == glasses.OverflowScroll {
		strip.Min.X = strip.Max.X - s.dot/2
		length := max(in.Dy()*in.Dy()/b.content, s.dot)
		strip.Min.Y += (in.Dy() - length) * b.offset / limit
		strip.Max.Y = strip.Min.Y + length
		c.fill(strip, clip, ink)
		return
	}
	page, pages := b.offset/max(in.Dy(), 1), b.pages()
	if b.pageLabel {
		p := pageLabel(s, page, pages)
		c.line(p.glyphs, strip.Max.X-p.natural, strip.Max.Y-p.face.line, p.face, clip, ink)
		return
	}
	step := 2 * s.dot
	y := strip.Min.Y + (strip.Dy()-(step*pages-s.dot))/2
	for i := range pages {
		dot := image.Rect(strip.Max.X-s.dot, y+i*step, strip.Max.X, y+i*step+s.dot)
		if i == page {
			c.fill(dot, clip, ink)
		} else {
			c.frame(dot, clip, 1, ink)
		}
	}
}

// fill paints a rectangle.
func (c *canvas) fill(r, clip image.Rectangle, ink rgb) {
	r = r.Intersect(clip)
	for y := r.Min.Y; y < r.Max.Y; y++ {
		row := c.img.Pix[c.img.PixOffset(r.Min.X, y):]
		for i := 0; i < 4*r.Dx(); i += 4 {
			row[i], row[i+1], row[i+2] = ink[0], ink[1], ink[2]
		}
	}
}

// frame paints the edge of a rectangle, w pixels wide, with its corners left out.
func (c *canvas) frame(r, clip image.Rectangle, w int, ink rgb) {
	w = min(w, (r.Dx()+1)/2, (r.Dy()+1)/2)
	for _, e := range []image.Rectangle{
		{Min: image.Pt(r.Min.X+w, r.Min.Y), Max: image.Pt(r.Max.X-w, r.Min.Y+w)},
		{Min: image.Pt(r.Min.X+w, r.Max.Y-w), Max: image.Pt(r.Max.X-w, r.Max.Y)},
		{Min: image.Pt(r.Min.X, r.Min.Y+w), Max: image.Pt(r.Min.X+w, r.Max.Y-w)},
		{Min: image.Pt(r.Max.X-w, r.Min.Y+w), Max: image.Pt(r.Max.X, r.Max.Y-w)},
	} {
		c.fill(e, clip, ink)
	}
}

// stamp paints ink through a mask whose top left pixel is at x, y.
func (c *canvas) stamp(m *mask, x, y int, clip image.Rectangle, ink rgb) {
	r := image.Rect(x, y, x+m.w, y+m.h).Intersect(clip)
	for py := r.Min.Y; py < r.Max.Y; py++ {
		cover := m.pix[(py-y)*m.w+r.Min.X-x:]
		row := c.img.Pix[c.img.PixOffset(r.Min.X, py):]
		for i := range r.Dx() {
			if a := c.q.cover(cover[i]); a > 0 {
				blend(row[4*i:], ink, a)
			}
		}
	}
}

// blend moves a pixel towards ink by a of 255.
func blend(px []byte, ink rgb, a uint8) {
	for k := range 3 {
		px[k] = uint8((int(px[k])*(255-int(a)) + int(ink[k])*int(a) + 127) / 255)
	}
}

// maskRound blackens what lies outside the circle that touches the sides.
func maskRound(img *image.NRGBA) {
	w, h := img.Rect.Dx(), img.Rect.Dy()
	side := min(w, h)
	for y := range h {
		for x := range w {
			dx, dy := 2*x+1-w, 2*y+1-h // twice the way from the middle
			if dx*dx+dy*dy > side*side {
				copy(img.Pix[img.PixOffset(x, y):], []byte{0, 0, 0, 0xff})
			}
		}
	}
}
