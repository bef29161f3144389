package render

import (
	"image"

	"github.com/service-dev/service/glasses"
)

// layout positions every box. It first determines widths and the heights that follow from them. Then columns distribute
// the remaining height, which determines the positions.
func (s *scene) layout() {
	s.measure(s.root, s.area.Dx())
	s.place(s.root, s.area.Min.X, s.area.Min.Y, s.area.Dy())
}

// gaps returns the total space between the children of b.
func (b *box) gaps() int { return b.n.Gap * max(len(b.kids)-1, 0) }

// measure sets the width of b and the height that it needs at that width.
func (s *scene) measure(b *box, w int) {
	b.w, b.h = max(w, 0), 0
	in := max(b.w-2*b.padX-b.strip, 0)
	switch b.n.Type {
	case glasses.NodeText, glasses.NodeButton:
		b.text.wrap(min(in, s.textWidth))
		b.h = b.text.height()
	case glasses.NodeImage:
		b.h = s.pictureBounds(b, in).Y
	case glasses.NodeIcon:
		b.h = s.iconSize(b.n)
	case glasses.NodeProgress:
		b.h = or(b.n.Height, max(s.body.size/2, 6*s.border))
	case glasses.NodeRow:
		for i, kw := range s.rowWidths(b, in) {
			s.measure(b.kids[i], kw)
			b.h = max(b.h, b.kids[i].h)
		}
	case glasses.NodeColumn, glasses.NodeList:
		b.h = b.gaps()
		for _, k := range b.kids {
			kw := in
			if !fills(k) {
				kw = min(k.natural, in)
			}
			s.measure(k, kw)
			b.h += k.h
		}
	default:
		b.h = or(b.n.Height, s.body.line)
	}
	b.h += 2 * b.padY
}

// fills reports whether a child is as wide as its column.
func fills(k *box) bool {
	switch k.n.Type {
	case glasses.NodeText, glasses.NodeList:
		return true
	case glasses.NodeProgress:
		return k.n.Width == 0
	case glasses.NodeColumn, glasses.NodeRow:
		if a := k.parent.n.Align; a == "" || a == glasses.AlignStart {
			return true
		}
		for _, kk := range k.kids {
			if kk.n.Grow > 0 {
				return true
			}
		}
	}
	return k.parent.n.Type == glasses.NodeList
}

// rowWidths distributes the width of a row. If the width is too small, flexible children shrink, the widest first.
func (s *scene) rowWidths(b *box, in int) []int {
	widths := make([]int, len(b.kids))
	left := in - b.gaps()
	var flexible []*int
	for i, k := range b.kids {
		widths[i] = k.natural
		left -= k.natural
		if k.n.Type != glasses.NodeIcon && (k.n.Type != glasses.NodeProgress || k.n.Width == 0) {
			flexible = append(flexible, &widths[i])
		}
	}
	if left < 0 {
		shrink(flexible, -left, 0)
	} else {
		grow(b.kids, widths, left)
	}
	return widths
}

// grow distributes the remaining space among the children according to their Grow.
func grow(kids []*box, sizes []int, left int) {
	shares := 0
	for _, k := range kids {
		shares += max(k.n.Grow, 0)
	}
	for i, k := range kids {
		if g := max(k.n.Grow, 0); g > 0 { // computed from the remainder, so that no pixel is lost to rounding
			part := left * g / shares
			sizes[i] += part
			left, shares = left-part, shares-g
		}
	}
}

// shrink reduces sizes by much in total, the largest first, so that the result is as even as possible. No size becomes
// smaller than least.
func shrink(sizes []*int, much, least int) {
	total := -much
	for _, v := range sizes {
		total += *v
	}
	total = max(total, 0)
	open := sizes
	for len(open) > 0 { // sizes below an even share stay; the others share what remains
		share := total / len(open)
		var rest []*int
		for _, v := range open {
			if *v <= share {
				total -= *v
			} else {
				rest = append(rest, v)
			}
		}
		if len(rest) == len(open) {
			for i, v := range open {
				part := total / (len(open) - i)
				total -= part
				*v = min(*v, max(part, least))
			}
			return
		}
		open = rest
	}
}

// place positions b at x, y with height h, and its children inside it.
func (s *scene) place(b *box, x, y, h int) {
	b.x, b.y, b.h = x, y, h
	in := b.inner(b.rect())
	switch b.n.Type {
	case glasses.NodeRow:
		s.placeRow(b, in)
	case glasses.NodeColumn, glasses.NodeList:
		s.placeColumn(b, in)
	}
	if b.paginates() {
		b.flow()
	}
}

func (s *scene) placeColumn(b *box, in image.Rectangle) {
	heights := make([]int, len(b.kids))
	left := in.Dy() - b.gaps()
	var shrinking []*int
	for i, k := range b.kids {
		heights[i] = k.h
		left -= k.h
		if k.shrinks {
			shrinking = append(shrinking, &heights[i])
		}
	}
	if left > 0 {
		grow(b.kids, heights, left)
	} else if !b.scrolls() {
		shrink(shrinking, -left, s.body.line)
	}
	y := in.Min.Y
	for i, k := range b.kids {
		s.place(k, b.across(in, aligned(b.n.Align, in.Dx()-k.w), k.w), y, heights[i])
		y += heights[i] + b.n.Gap
	}
	b.content = y - in.Min.Y - b.n.Gap
}

func (s *scene) placeRow(b *box, in image.Rectangle) {
	x := 0
	b.content = 0
	for _, k := range b.kids {
		h := k.h
		if k.shrinks && !b.scrolls() {
			h = min(h, in.Dy())
		}
		if isContainer(k.n) && b.n.Align == "" {
			h = max(h, in.Dy())
		}
		s.place(k, b.across(in, x, k.w), in.Min.Y+aligned(b.n.Align, in.Dy()-h), h)
		x += k.w + b.n.Gap
		b.content = max(b.content, k.h)
	}
}

// aligned returns the offset of content from the starting edge if the space left is free.
func aligned(align string, left int) int {
	switch {
	case left <= 0:
		return 0
	case align == glasses.AlignCenter:
		return left / 2
	case align == glasses.AlignEnd:
		return left
	}
	return 0
}
