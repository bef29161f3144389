package render

import (
	"cmp"
	"image"

	"github.com/service-dev/service/glasses"
)

// Graphic describes a node that is drawn without a text: an image, an icon, a progress bar, or a node of an unknown
// type, which is drawn as an empty box.
type Graphic struct {
	Type, ID, Path string
	// Name is the alt of an image or the name of an icon.
	Name string
	// Value is the value of a progress bar: 0 to 100.
	Value int
	// Rect is the position, which may be outside the panel.
	Rect image.Rectangle
	// Visible is VisibleFull if Rect is on the panel and nothing is drawn over the graphic, and VisibleNone if no pixel
	// of it can be seen. An image with nothing to see, such as a black one, counts by its Rect alone.
	Visible string
	// Whole reports whether Rect is on the panel, even if something is drawn over the graphic.
	Whole bool
}

// maxEmptyIcon is the largest side of an icon that may have no pixel on a panel without antialiasing.
const maxEmptyIcon = 4

func isGraphic(n *glasses.Node) bool {
	return n.Type != glasses.NodeText && n.Type != glasses.NodeButton && !isContainer(n)
}

func graphicName(n *glasses.Node) string {
	if n.Type == glasses.NodeIcon {
		return cmp.Or(n.Icon, n.Alt)
	}
	return n.Alt
}

// graphicRect returns where a graphic at r is drawn.
func (s *scene) graphicRect(b *box, r image.Rectangle) image.Rectangle {
	switch in := b.inner(r); b.n.Type {
	case glasses.NodeImage:
		return in
	case glasses.NodeIcon:
		size := s.iconSize(b.n)
		return image.Rect(in.Min.X, in.Min.Y, in.Min.X+size, in.Min.Y+size)
	}
	return r
}

// isWhole reports whether a graphic is not clipped. One without pixels is clipped.
func (s *scene) isWhole(p paintedBox) bool {
	at := s.graphicRect(p.box, p.r)
	return !at.Empty() && at.In(s.paintClip(p.r, p.clip))
}

// graphicOf returns how much of a graphic is visible in the picture. places are the areas that other boxes paint.
// paint is a function because painting is expensive.
func (s *scene) graphicOf(p paintedBox, places []paintedPlace, paint func() *owners) Graphic {
	at := s.graphicRect(p.box, p.r)
	g := Graphic{Type: p.n.Type, ID: p.n.ID, Path: p.path(), Name: graphicName(p.n), Rect: at, Visible: VisibleNone}
	if p.n.Type == glasses.NodeProgress {
		g.Value = min(max(p.n.Value, 0), 100)
	}
	_, isBright := s.leastSeen(s.ink(p.n.Colour), rgb{})
	isPainted := p.r.Overlaps(p.clip) && at.Overlaps(s.paintClip(p.r, p.clip))
	if !isPainted || !isBright && p.n.Type != glasses.NodeImage {
		return g
	}
	g.Whole = s.isWhole(p)
	if g.Whole && at.Dx() > maxEmptyIcon && !isCovered(p.box, at, places) {
		g.Visible = VisibleFull
		return g
	}
	switch pixels := paint().of[p.box]; {
	case pixels.painted == pixels.covered && (p.n.Type != glasses.NodeImage || pixels.painted > 0):
	case g.Whole && pixels.covered == 0:
		g.Visible = VisibleFull
	default:
		g.Visible = VisiblePartial
	}
	return g
}

// owners records, for each pixel of a picture being painted, which graphic changed its colour last.
type owners struct {
	rect image.Rectangle
	last []*ownedPixels // row by row; nil for other parts
	of   map[*box]*ownedPixels
}

// ownedPixels counts the pixels that a graphic painted, and those of them that were painted over.
type ownedPixels struct{ painted, covered int }

// begin returns the count of a graphic that is about to be painted.
func (o *owners) begin(graphic *box) *ownedPixels {
	count := &ownedPixels{}
	o.of[graphic] = count
	return count
}

// take notes that a graphic, or nil for another part, changed the colour of the pixel x, y.
func (o *owners) take(x, y int, graphic *ownedPixels) {
	last := &o.last[(y-o.rect.Min.Y)*o.rect.Dx()+x-o.rect.Min.X]
	if *last == graphic {
		return
	}
	if *last != nil {
		(*last).covered++
	}
	if graphic != nil {
		graphic.painted++
	}
	*last = graphic
}

// paintOwners paints the scene and returns which graphic owns which pixel.
func (s *scene) paintOwners() *owners {
	c := canvas{img: image.NewNRGBA(s.area), q: s.quantiser, pixels: maxPixels, owners: &owners{rect: s.area,
		last: make([]*ownedPixels, s.area.Dx()*s.area.Dy()), of: map[*box]*ownedPixels{}}}
	s.paintOn(&c)
	return c.owners
}
