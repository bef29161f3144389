package render

import (
	"image"
	"strconv"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/render/typeset"
)

// scene is the layout of a view on a screen.
type scene struct {
	screen
	root    *box // nil if the panel is clear
	nodes   int
	letters letters
	targets []*box
	focus   int // index into targets; -1 for none
	// primary is the scroller to which the view's scroll applies. It is the first scroller in drawing order with hidden
	// content. Other scrollers follow the focus.
	primary   *box
	scrollers []*box // in drawing order
	// painted counts the changes of pixels in all passes that paint the scene. Every blended colour counts once.
	painted int
}

func newScene(sc screen, v glasses.View) *scene {
	s := &scene{screen: sc, focus: -1}
	if v.Tree == nil {
		return s
	}
	s.letters = lettersOf(v.Tree)
	s.root = s.build(v.Tree, nil, 0, 1)
	s.layout()
	if s.labelPages() {
		s.layout()
	}
	for _, b := range s.scrollers {
		if b.limit() > 0 {
			s.primary = b
			break
		}
	}
	s.point(v.Focus, v.Scroll)
	return s
}

// point sets the focus and the scroll position of the primary scroller to the nearest valid values.
func (s *scene) point(focus, scroll int) {
	s.focus = min(max(focus, -1), len(s.targets)-1)
	for _, b := range s.scrollers {
		b.offset = 0
	}
	if s.primary != nil {
		s.primary.offset = s.primary.within(scroll)
	}
	// Proceed from the inside out, because an outer scroller needs the inner offsets.
	for i := len(s.scrollers) - 1; i >= 0 && s.focus >= 0; i-- {
		if b, t := s.scrollers[i], s.targets[s.focus]; b != s.primary && b.has(t) {
			b.offset = b.reveal(t, 0)
		}
	}
}

// scroll returns the scroll position of the primary scroller, as in View.Scroll.
func (s *scene) scroll() int {
	if s.primary == nil {
		return 0
	}
	return s.primary.offset
}

// walk visits every box in drawing order. r is the box's place on the panel. clip is the part of the panel that it may
// paint.
func (s *scene) walk(visit func(b *box, r, clip image.Rectangle)) {
	if s.root != nil {
		s.walkBox(s.root, 0, s.area, visit)
	}
}

func (s *scene) walkBox(b *box, dy int, clip image.Rectangle, visit func(b *box, r, clip image.Rectangle)) {
	r := b.rect().Add(image.Pt(0, dy))
	visit(b, r, clip)
	clip = clip.Intersect(b.inner(r))
	for _, k := range b.kids {
		s.walkBox(k, dy-b.offset, clip, visit)
	}
}

// build creates the boxes with all properties that do not depend on width. It omits nodes beyond the limits of a tree,
// which glasses.ParseShow rejects.
func (s *scene) build(n *glasses.Node, parent *box, index, depth int) *box {
	s.nodes++
	b := &box{n: n, parent: parent, index: index, target: -1, align: n.Align}
	inList := parent != nil && parent.n.Type == glasses.NodeList
	if n.Type == glasses.NodeButton || inList {
		b.target = len(s.targets)
		s.targets = append(s.targets, b)
	}
	if inList && n.Type != glasses.NodeButton { // space for the focus outline
		b.padX, b.padY = 4*s.border, s.entryPad
	}
	s.direct(b)
	s.buildLeaf(b)
	if !isContainer(n) {
		b.natural += 2 * b.padX
		return b
	}
	b.padX, b.padY = b.padX+n.Padding, b.padY+n.Padding
	if b.scrolls() {
		b.shrinks, b.strip = true, s.dot+s.dot/2
		s.scrollers = append(s.scrollers, b)
	}
	for i := range n.Children {
		if depth == glasses.MaxTreeDepth || s.nodes >= glasses.MaxNodes {
			break
		}
		k := s.build(&n.Children[i], b, i, depth+1)
		b.kids = append(b.kids, k)
		b.shrinks = b.shrinks || k.shrinks
		if n.Type == glasses.NodeRow {
			b.natural += k.natural
		} else {
			b.natural = max(b.natural, k.natural)
		}
	}
	if n.Type == glasses.NodeRow {
		b.natural += b.gaps()
	}
	b.natural += 2*b.padX + b.strip
	return b
}

func (s *scene) buildLeaf(b *box) {
	n := b.n
	switch n.Type {
	case glasses.NodeText:
		if p := b.parent; b.align == "" && p != nil && p.n.Type != glasses.NodeRow {
			b.align = p.n.Align
		}
		b.text = newParagraph(n.Text, s.styled(n.Style), s.typesetting(b))
		b.natural = min(b.text.natural, s.textWidth)
	case glasses.NodeButton:
		if p := b.parent; b.align == "" && (p == nil || p.n.Type != glasses.NodeList) {
			b.align = glasses.AlignCenter
		}
		b.text = newParagraph(n.Text, s.styled(n.Style), s.typesetting(b))
		b.padX, b.padY = s.body.size*2/3, s.body.size/6+s.border
		b.natural = min(b.text.natural, s.textWidth)
	case glasses.NodeImage:
		b.own, _ = pictureSize(n.Data)
		b.natural = s.pictureBounds(b, s.area.Dx()).X
	case glasses.NodeIcon:
		b.natural = s.iconSize(n)
	case glasses.NodeProgress:
		b.natural = or(n.Width, 4*s.body.size)
	case glasses.NodeColumn, glasses.NodeRow, glasses.NodeList:
	default:
		b.natural = or(n.Width, s.body.line)
	}
}

// iconSize returns the side of an icon's square. It is the requested size or the height of a line of text.
func (s *scene) iconSize(n *glasses.Node) int {
	return min(or(n.Width, glasses.MaxLength), or(n.Height, glasses.MaxLength), or(max(n.Width, n.Height), s.body.line))
}

// labelPages replaces page dots with a label where the dots do not fit. It reports whether it replaced any.
func (s *scene) labelPages() bool {
	any := false
	for _, b := range s.scrollers {
		if pages := b.pages(); b.paginates() && (pages > 8 || 2*s.dot*pages > b.page()) && pages > 1 {
			b.pageLabel, any = true, true
			b.strip = pageLabel(s, pages, pages).natural + s.dot
		}
	}
	return any
}

// pageLabel returns the text "page/pages". page counts from 0.
func pageLabel(s *scene, page, pages int) *paragraph {
	return newParagraph(strconv.Itoa(page+1)+"/"+strconv.Itoa(pages), s.caption, typeset.Options{})
}

// or returns v if it is positive, and def otherwise.
func or(v, def int) int {
	if v > 0 {
		return v
	}
	return def
}
