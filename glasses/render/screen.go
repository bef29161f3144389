package render

import (
	"fmt"
	"image"
	"strings"

	"github.com/service-dev/service/glasses"
)

// screen contains the properties of a panel that layout and drawing need.
type screen struct {
	// area is the usable area, which is the whole panel or the inscribed square of a round one.
	area image.Rectangle
	// large, title, body and caption are the faces of the text styles, in sizes that are legible on this panel.
	large, title, body, caption face
	// textWidth is the maximum width of a line of text in pixels.
	textWidth int
	border    int // width of an outline
	entryPad  int // padding above and below a list entry
	focusEdge int // width of the outline of a focused entry
	dot       int // side of a page dot; a scroll bar is half as wide
	// withoutAdded excludes added fonts.
	withoutAdded bool
	quantiser
}

// Area returns the usable part of a model's panel. It is empty for a model without a panel.
func Area(m glasses.DeviceModel) image.Rectangle {
	s, _ := newScreen(m)
	return s.area
}

// face is a font at one size. size and line, the distance between baselines, are in pixels.
type face struct {
	bold       bool
	size, line int
}

// newScreen returns the screen of a model. ok is false for a model without a panel.
func newScreen(m glasses.DeviceModel) (screen, bool) {
	p := m.Panel
	if p == nil || p.Width <= 0 || p.Height <= 0 || p.Width > maxSide || p.Height > maxSide {
		return screen{}, false
	}
	s := screen{area: image.Rect(0, 0, p.Width, p.Height), quantiser: newQuantiser(p),
		withoutAdded: m.WithoutAddedFonts}
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
	if p.TextLines > 0 { // list entries count as lines
		s.focusEdge, s.entryPad = s.border, 0
	}
	return s, true
}

func (s *screen) setFaces(p *glasses.Panel) {
	if p.TextLines > 0 { // exactly as many lines fit in every style, and half as many in large
		line := max(s.area.Dy()/p.TextLines, 1)
		size := max(line*4/5, 1)
		s.title, s.body, s.caption = face{true, size, line}, face{false, size, line}, face{false, max(size*4/5, 1),
			line}
		s.large = face{true, 2 * size, 2 * line}
		return
	}
	size := 14 + min(s.area.Dx(), s.area.Dy())/40
	of := func(bold bool, size int) face { return face{bold, size, size*5/4 + 1} }
	s.large, s.title = of(true, size*5/2), of(true, size*4/3)
	s.body, s.caption = of(false, size), of(false, size*4/5)
}

// styled returns the face of a style, or body if the style is empty or unknown.
func (s *screen) styled(style string) face {
	switch style {
	case glasses.StyleLarge:
		return s.large
	case glasses.StyleTitle:
		return s.title
	case glasses.StyleCaption:
		return s.caption
	}
	return s.body
}

// TextSize describes how a model draws a text style.
type TextSize struct {
	Style string
	// Size is the height of the font, and Line is the distance between baselines, in panel pixels.
	Size, Line int
	// Lines is the number of lines that fit on the panel.
	Lines int
}

// TextSizes returns the text sizes of a model from the largest to the smallest, or nil for a model without a panel.
func TextSizes(m glasses.DeviceModel) []TextSize {
	s, ok := newScreen(m)
	if !ok {
		return nil
	}
	var sizes []TextSize
	for _, style := range glasses.Styles() {
		f := s.styled(style)
		sizes = append(sizes, TextSize{style, f.size, f.line, s.area.Dy() / f.line})
	}
	return sizes
}

// TextSizeWords describes TextSizes in one line. It returns "" for a model without a panel.
func TextSizeWords(m glasses.DeviceModel) string {
	var words []string
	for _, s := range TextSizes(m) {
		words = append(words, fmt.Sprintf("%s %d (%d lines of %d)", s.Style, s.Size, s.Lines, s.Line))
	}
	return strings.Join(words, ", ")
}
