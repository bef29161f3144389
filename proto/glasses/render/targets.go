package render

import (
	"image"

	"github.com/service-dev/service/proto/glasses"
)

// Target is a node that can have the focus: a button, or a child of a list.
type Target struct {
	// ID is the node's own; empty when it has none.
	ID string
	// Path names the node in its tree, e.g. tree.children[0].
	Path string
	// Rect is where it is on the panel; when it is scrolled or clipped away, this lies outside or is covered.
	Rect image.Rectangle
}

// Targets lists what can have the focus, in drawing order. View.Focus is an index into it.
func Targets(m glasses.DeviceModel, v glasses.View) []Target {
	s, ok := laidOut(m, v)
	if !ok {
		return nil
	}
	out := make([]Target, 0, len(s.targets))
	s.walk(func(b *box, r, _ image.Rectangle) {
		if b.target >= 0 {
			out = append(out, Target{ID: b.n.ID, Path: b.path(), Rect: r})
		}
	})
	return out
}

// Hit gives the target that is seen at a pixel of the panel; of several the innermost.
func Hit(m glasses.DeviceModel, v glasses.View, x, y int) (Target, bool) {
	s, ok := laidOut(m, v)
	if !ok {
		return Target{}, false
	}
	var hit Target
	found := false
	s.walk(func(b *box, r, clip image.Rectangle) {
		if b.target >= 0 && image.Pt(x, y).In(r.Intersect(clip)) {
			hit, found = Target{ID: b.n.ID, Path: b.path(), Rect: r}, true
		}
	})
	return hit, found
}

// Clamp brings focus and scroll to what the view can have: focus -1 or an index of Targets, scroll from 0 to the end of
// the content. A view with nothing but a tree starts at its first target, and at its top.
func Clamp(m glasses.DeviceModel, v glasses.View) glasses.View {
	s, ok := laidOut(m, v)
	if !ok {
		return glasses.View{Tree: v.Tree, Focus: -1}
	}
	return glasses.View{Tree: v.Tree, Focus: s.focus, Scroll: s.scroll()}
}

// Navigate moves the focus to the next target (direction down or right) or the last one (up, left), and scrolls to it.
// Where there is no further target it scrolls on. Another direction only clamps.
func Navigate(m glasses.DeviceModel, v glasses.View, direction string) glasses.View {
	v = Clamp(m, v)
	s, ok := laidOut(m, v)
	step := map[string]int{"down": 1, "right": 1, "up": -1, "left": -1}[direction]
	if !ok || step == 0 {
		return v
	}
	next := v.Focus + step
	if v.Focus < 0 {
		next = 0
	}
	if next >= 0 && next < len(s.targets) {
		v.Focus = next
		s, _ = laidOut(m, v) // scrollers other than the primary follow the focus
		if b := s.primary; b != nil && b.has(s.targets[next]) {
			v.Scroll = b.reveal(s.targets[next], b.offset)
		}
		return v
	}
	if b := s.primary; b != nil {
		by := b.page()
		if !b.paginates() { // a line stays in sight, to read on from
			by = max(by-s.body.line, by/2, 1)
		}
		v.Scroll = b.within(b.offset + step*by)
	}
	return v
}

// Text gives the text of a tree in reading order, an entry for each node that bears text, whether or not it is in sight.
func Text(tree *glasses.Node) []string {
	if tree == nil {
		return []string{}
	}
	return appendText([]string{}, tree, 1)
}

func appendText(out []string, n *glasses.Node, depth int) []string {
	if n.Text != "" && (n.Type == glasses.NodeText || n.Type == glasses.NodeButton) {
		out = append(out, n.Text)
	}
	if isContainer(n) && depth < glasses.MaxTreeDepth {
		for i := range n.Children {
			out = appendText(out, &n.Children[i], depth+1)
		}
	}
	return out
}

func laidOut(m glasses.DeviceModel, v glasses.View) (*scene, bool) {
	sc, ok := newScreen(m)
	if !ok {
		return nil, false
	}
	return newScene(sc, v), true
}
