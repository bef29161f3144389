package render

import (
	"image"

	"github.com/service-dev/service/glasses"
)

// Target is a focusable node: a button, or a child of a list.
type Target struct {
	// ID is the ID of the node, if it has one.
	ID string
	// Path is the path of the node in its tree, e.g. tree.children[0].
	Path string
	// Rect is the target's position on the panel. If the target is scrolled out of view or clipped, Rect is outside the
	// panel or covered.
	Rect image.Rectangle
	// Visible is how much of Rect is on the panel: VisibleFull, VisiblePartial or VisibleNone.
	Visible string
}

// Targets returns the nodes that can have the focus, in drawing order. View.Focus is an index into the result.
func Targets(m glasses.DeviceModel, v glasses.View) []Target {
	s, ok := laidOut(m, v)
	if !ok {
		return nil
	}
	out := make([]Target, 0, len(s.targets))
	s.walk(func(b *box, r, clip image.Rectangle) {
		if b.target >= 0 {
			out = append(out, targetOf(b, r, clip))
		}
	})
	return out
}

// Hit returns the innermost target visible at a pixel of the panel.
func Hit(m glasses.DeviceModel, v glasses.View, x, y int) (Target, bool) {
	s, ok := laidOut(m, v)
	if !ok {
		return Target{}, false
	}
	i := s.at(image.Pt(x, y))
	if i < 0 {
		return Target{}, false
	}
	return Targets(m, v)[i], true
}

// Clamp limits focus and scroll to valid values. focus is -1 or an index into Targets, and scroll is between 0 and the
// end of the content. A view that sets only a tree starts at its first target and at the top.
func Clamp(m glasses.DeviceModel, v glasses.View) glasses.View {
	s, ok := laidOut(m, v)
	if !ok {
		return glasses.View{Tree: v.Tree, Focus: -1}
	}
	return s.view(v.Tree)
}

// Navigate moves the focus to the next target (down, right) or the previous one (up, left) and scrolls to it. If there
// is no further target, it only scrolls. For any other direction it only clamps the view.
func Navigate(m glasses.DeviceModel, v glasses.View, direction string) glasses.View {
	s, ok := laidOut(m, v)
	if !ok {
		return Clamp(m, v)
	}
	s.move(direction)
	return s.view(v.Tree)
}

// Words returns the texts of a tree in reading order, visible or not, with one entry for each node that has text.
func Words(tree *glasses.Node) []string {
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
