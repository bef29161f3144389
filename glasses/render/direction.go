package render

import (
	"cmp"
	"image"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/render/typeset"
)

// firstRightToLeft is the first UTF-8 byte of U+0590, the first letter that runs from right to left. The other bytes of
// a character are smaller.
const firstRightToLeft = 0xd6

// letters records whether the first letter in the texts of a node and its descendants runs from right to left. It has
// no entry for a node without letters.
type letters map[*glasses.Node]bool

// lettersOf returns the letters of a tree. It returns nil for a tree without right-to-left text, so that most trees
// need no further work.
func lettersOf(tree *glasses.Node) letters {
	if !mayMirror(tree, 1) {
		return nil
	}
	l := letters{}
	l.add(tree, 1)
	return l
}

func mayMirror(n *glasses.Node, depth int) bool {
	if n.Direction == glasses.DirectionRTL {
		return true
	}
	for i := range len(n.Text) {
		if n.Text[i] >= firstRightToLeft {
			return true
		}
	}
	for i := range n.Children {
		if depth < glasses.MaxTreeDepth && mayMirror(&n.Children[i], depth+1) {
			return true
		}
	}
	return false
}

func (l letters) add(n *glasses.Node, depth int) {
	if hasText(n) {
		if rtl, found := typeset.FirstLetter([]rune(n.Text)); found {
			l[n] = rtl
		}
		return
	}
	for i := range n.Children {
		if depth == glasses.MaxTreeDepth || !isContainer(n) {
			return
		}
		k := &n.Children[i]
		l.add(k, depth+1)
		_, known := l[n]
		if rtl, found := l[k]; found && !known {
			l[n] = rtl
		}
	}
}

func hasText(n *glasses.Node) bool { return n.Type == glasses.NodeText || n.Type == glasses.NodeButton }

// direct sets the language and direction of a box. A direction applies to all descendants of the box except texts,
// which run in the direction of their first letter. A container without a direction uses the direction of the first
// letter below it. A box without letters inherits its container's direction.
func (s *scene) direct(b *box) {
	b.language, b.direction = b.n.Language, b.n.Direction
	if p := b.parent; p != nil {
		b.language, b.rtl = cmp.Or(b.language, p.language), p.rtl
		if !hasText(b.n) {
			b.direction = cmp.Or(b.direction, p.direction)
		}
	}
	switch b.direction {
	case glasses.DirectionLTR, glasses.DirectionRTL:
		b.rtl = b.direction == glasses.DirectionRTL
	default:
		b.direction = ""
		if rtl, found := s.letters[b.n]; found {
			b.rtl = rtl
		}
	}
}

// typesetting returns the options for typesetting the text of a box.
func (s *scene) typesetting(b *box) typeset.Options {
	return typeset.Options{Language: b.language, RTL: b.rtl, Auto: b.direction == "", WithoutAdded: s.withoutAdded}
}

// across returns the left edge of a part of width w whose distance from the starting edge of in is distance, in the
// direction of b.
func (b *box) across(in image.Rectangle, distance, w int) int {
	if b.rtl {
		return in.Max.X - distance - w
	}
	return in.Min.X + distance
}

// indicator returns the strip for the indicator of a scroller whose content is in.
func (b *box) indicator(in image.Rectangle) image.Rectangle {
	if b.rtl {
		return image.Rect(in.Min.X-b.strip, in.Min.Y, in.Min.X, in.Max.Y)
	}
	return image.Rect(in.Max.X, in.Min.Y, in.Max.X+b.strip, in.Max.Y)
}

// edge returns the part of a strip that has width w and is farthest from the content.
func (b *box) edge(strip image.Rectangle, w int) image.Rectangle {
	if b.rtl {
		strip.Max.X = strip.Min.X + w
	} else {
		strip.Min.X = strip.Max.X - w
	}
	return strip
}

// isMirrored reports whether the next target is to the left of b.
func (b *box) isMirrored() bool {
	return b.parent != nil && b.parent.n.Type == glasses.NodeRow && b.parent.rtl
}
