package render

import (
	"cmp"
	"image"

	"github.com/service-dev/service/proto/glasses"
	"github.com/service-dev/service/proto/glasses/render/typeset"
)

// firstRightToLeft is the first byte of the first letter that runs from right to left in UTF-8, U+0590. Later bytes of
// other characters are less.
const firstRightToLeft = 0xd6

// letters holds whether the first letter in the texts of a node and of those below it runs from right to left. It has
// no entry for nodes without a letter.
type letters map[*glasses.Node]bool

// lettersOf returns nil for a tree that certainly has nothing from right to left, so that most trees cost nothing.
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

// direct sets the language and the direction of a box. A direction holds for everything below but texts, which run as
// their first letter does. Containers without one run as the first letter below them does, and what has no letter as
// its container.
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

// typesetting returns the options for the text of a box.
func (s *scene) typesetting(b *box) typeset.Options {
	return typeset.Options{Language: b.language, RTL: b.rtl, Auto: b.direction == "", WithoutAdded: s.withoutAdded}
}

// across returns the left edge of something of width w that begins at a distance from the edge of in where b begins.
func (b *box) across(in image.Rectangle, distance, w int) int {
	if b.rtl {
		return in.Max.X - distance - w
	}
	return in.Min.X + distance
}

// indicator returns the strip of a scroller whose content is in.
func (b *box) indicator(in image.Rectangle) image.Rectangle {
	if b.rtl {
		return image.Rect(in.Min.X-b.strip, in.Min.Y, in.Min.X, in.Max.Y)
	}
	return image.Rect(in.Max.X, in.Min.Y, in.Max.X+b.strip, in.Max.Y)
}

// edge returns the part of a strip that is w wide and away from the content.
func (b *box) edge(strip image.Rectangle, w int) image.Rectangle {
	if b.rtl {
		strip.Max.X = strip.Min.X + w
	} else {
		strip.Min.X = strip.Max.X - w
	}
	return strip
}

// isMirrored reports whether the next target is at the left of b.
func (b *box) isMirrored() bool {
	return b.parent != nil && b.parent.n.Type == glasses.NodeRow && b.parent.rtl
}
