package render

import (
	"image"

	"github.com/service-dev/service/proto/glasses"
)

// screen is what layout and drawing need to know of a panel.
type screen struct {
	// area is what content may use: the panel, or the inscribed square of a round one.
	area image.Rectangle
	// faces by style, with the sizes that are legible on this panel.
	title, body, caption face
	// textWidth is the widest line of text in pixels.
	textWidth int
	border    int // width of an edge
	entryPad  int // above and below a list's entry
	focusEdge int // width of the edge around a focused entry
	dot       int // side of a page's dot; the bar of a scroller is half as wide
	quantiser
}

// face is a font at a size. Both are pixels, line is from one baseline to the next.
type face struct {
	bold       bool
	size, line int
}

// newScreen is false for a model without panel.
func newScreen(m glasses.DeviceModel) (screen, bool) {
	p := m.Panel
	if p == nil || p.Width <= 0 || p.Height <= 0 || p.Width > maxSide || p.Height > maxSide {
		return screen{}, false
	}
	s := screen{area: image.Rect(0, 0, p.Width, p.Height), quantiser: newQuantiser(p)}
	if p.Shape == glasses.ShapeRound {
		side := min(p.Width, p.Height) * 70710 / 100000
		x, y := (p.Width-side)/2, (p.Height-side)/2
		s.area = image.Rect(x, y, x+side, y+side)
	}
	s.textWidth = s.area.Dx()
	if p.TextWidth > 0 {
		s.textWidth = min(s.textWidth, p.TextWidth)
	}
	s.setFaces(p)
	s.border = max(s.body.size/14, 1)
	s.dot = max(s.body.size/4, 4)
	s.focusEdge, s.entryPad = 2*s.border, 3*s.border
	if p.TextLines > 0 { // entries are lines too: as many must fit
		s.focusEdge, s.entryPad = s.border, 0
	}
	return s, true
}

func (s *screen) setFaces(p *glasses.Panel) {
	if p.TextLines > 0 { // whatever the style, that many lines fit and no more
		line := max(s.area.Dy()/p.TextLines, 1)
		size := max(line*4/5, 1)
		s.title, s.body, s.caption = face{true, size, line}, face{false, size, line}, face{false, max(size*4/5, 1), line}
		return
	}
	size := 14 + min(s.area.Dx(), s.area.Dy())/40
	of := func(bold bool, size int) face { return face{bold, size, size*5/4 + 1} }
	s.title, s.body, s.caption = of(true, size*4/3), of(false, size), of(false, size*4/5)
}

// styled gives the face of a style; the empty style and unknown ones are body.
func (s *screen) styled(style string) face {
	switch style {
	case glasses.StyleTitle:
		return s.title
	case glasses.StyleCaption:
		return s.caption
	}
	return s.body
}
