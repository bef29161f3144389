package render

import (
	"image"
	"strconv"
	"strings"

	"github.com/service-dev/service/glasses"
)

// box is a node with its position. Lengths are in panel pixels. x and y ignore scrolling.
type box struct {
	n      *glasses.Node
	parent *box
	index  int // index among the parent's children
	kids   []*box
	text   *paragraph // set for text and buttons
	own    image.Point
	align  string // set for text
	target int    // index among the targets; -1 for none

	language  string
	direction string // set on this node or an ancestor; if empty, the first letter determines the direction
	rtl       bool

	natural    int // width without wrapping
	padX, padY int
	strip      int // space for the indicator at the end of a scroller
	pageLabel  bool
	shrinks    bool // the height may be reduced if there is too little space

	x, y, w, h int
	content    int // height of the content; content that does not fit can be scrolled
	offset     int // number of pixels by which the content is scrolled
}

func isContainer(n *glasses.Node) bool {
	return n.Type == glasses.NodeColumn || n.Type == glasses.NodeRow || n.Type == glasses.NodeList
}

// scrolls reports whether the user can scroll to content that does not fit.
func (b *box) scrolls() bool {
	return isContainer(b.n) && (b.n.Overflow == glasses.OverflowScroll || b.n.Overflow == glasses.OverflowPaginate)
}

// scrolled reports whether b is inside a scroller.
func (b *box) scrolled() bool {
	for p := b.parent; p != nil; p = p.parent {
		if p.scrolls() {
			return true
		}
	}
	return false
}

func (b *box) paginates() bool { return b.scrolls() && b.n.Overflow == glasses.OverflowPaginate }

func (b *box) rect() image.Rectangle { return image.Rect(b.x, b.y, b.x+b.w, b.y+b.h) }

// inner returns the part of r that is available for the content of b.
func (b *box) inner(r image.Rectangle) image.Rectangle {
	left, right := b.padX, b.padX+b.strip
	if b.rtl {
		left, right = right, left
	}
	r = image.Rectangle{Min: r.Min.Add(image.Pt(left, b.padY)), Max: r.Max.Sub(image.Pt(right, b.padY))}
	r.Max.X, r.Max.Y = max(r.Min.X, r.Max.X), max(r.Min.Y, r.Max.Y)
	return r
}

// page returns the visible height of a scroller, at least 1.
func (b *box) page() int { return max(b.inner(b.rect()).Dy(), 1) }

func (b *box) pages() int { return max((b.content+b.page()-1)/b.page(), 1) }

// limit returns the maximum offset.
func (b *box) limit() int {
	switch {
	case b.paginates():
		return (b.pages() - 1) * b.page()
	case b.scrolls():
		return max(b.content-b.page(), 0)
	}
	return 0
}

// within returns offset clamped to the valid offsets.
func (b *box) within(offset int) int {
	offset = min(max(offset, 0), b.limit())
	if b.paginates() {
		offset -= offset % b.page()
	}
	return offset
}

// reveal returns the offset nearest to offset at which t, a descendant of b, is visible. If t is higher than b, the top
// of t is visible.
func (b *box) reveal(t *box, offset int) int {
	top := t.y - b.inner(b.rect()).Min.Y
	for p := t.parent; p != b; p = p.parent {
		top -= p.offset
	}
	switch view := b.page(); {
	case b.paginates():
		offset = top
	case top < offset || t.h >= view:
		offset = top
	case top+t.h > offset+view:
		offset = top + t.h - view
	}
	return b.within(offset)
}

// has reports whether t is a descendant of b.
func (b *box) has(t *box) bool {
	for p := t.parent; p != nil; p = p.parent {
		if p == b {
			return true
		}
	}
	return false
}

// move shifts a box and its content.
func (b *box) move(dy int) {
	if dy == 0 {
		return
	}
	b.y += dy
	for _, k := range b.kids {
		k.move(dy)
	}
}

// path returns the path of the node in the form used in errors about trees: tree.children[0].
func (b *box) path() string {
	if b.parent == nil {
		return "tree"
	}
	var parts []string
	for ; b.parent != nil; b = b.parent {
		parts = append(parts, ".children["+strconv.Itoa(b.index)+"]")
	}
	var s strings.Builder
	s.WriteString("tree")
	for i := len(parts) - 1; i >= 0; i-- {
		s.WriteString(parts[i])
	}
	return s.String()
}
