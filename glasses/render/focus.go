package render

import (
	"fmt"
	"image"
	"slices"
	"strings"

	"github.com/service-dev/service/glasses"
)

// Show returns the view of a tree that replaces another view. The focus moves to the target named by the tree's focus.
// Without one, it stays on the target with the same ID or, if there is none, moves to the first target. If the focus
// stays, the scroll position also stays, as far as the new content allows; it changes only to keep a focused target
// visible. Otherwise the view starts at the top, or at the target named by the tree's focus.
func Show(m glasses.DeviceModel, before glasses.View, tree *glasses.Node) glasses.View {
	s, ok := laidOut(m, glasses.View{Tree: tree})
	if !ok {
		return glasses.View{Tree: tree, Focus: -1}
	}
	old := focusedID(before)
	if tree.Focus != "" && tree.Focus != old {
		if i := s.named(tree.Focus, -1); i >= 0 {
			s.point(i, 0)
			s.reveal()
		}
		return s.view(tree)
	}
	i := s.named(old, before.Focus)
	if i < 0 {
		return s.view(tree)
	}
	s.point(i, before.Scroll)
	if last, _ := laidOut(m, before); last.inSight() {
		s.reveal()
	}
	return s.view(tree)
}

// focusedID returns the ID of the focused target in a view, or "" if there is none.
func focusedID(v glasses.View) string {
	if v.Tree == nil || v.Focus < 0 {
		return ""
	}
	if targets := v.Tree.Targets(); v.Focus < len(targets) {
		return targets[v.Focus].ID
	}
	return ""
}

// Use returns the view after an input of the wearer, and the ID of the input's target. The target was tapped on a
// simulator's panel, was selected, or now has the focus. On models without select, a tap without coordinates selects.
// On models without navigate, a swipe navigates. Other inputs do not change the view.
func Use(m glasses.DeviceModel, v glasses.View, in glasses.Input) (after glasses.View, target string) {
	s, ok := laidOut(m, v)
	if !ok || v.Tree == nil {
		return v, ""
	}
	switch {
	case in.Kind == glasses.InputTap && (in.X != 0 || in.Y != 0):
		i := s.at(image.Pt(in.X, in.Y))
		if i < 0 {
			return v, ""
		}
		s.point(i, v.Scroll)
	case in.Kind == m.MoveKind():
		s.move(in.Direction)
	case in.Kind != m.SelectKind():
		return v, ""
	}
	after = s.view(v.Tree)
	return after, focusedID(after)
}

// Reach returns the shortest sequence of inputs that moves the focus to the target id and selects it. The target must
// be at least partly visible when it is selected. Reach does not consider taps at a position, because only a
// simulator's panel can be touched. On failure it returns an error with code unreachable, or unsupported for a model
// without a panel.
func Reach(m glasses.DeviceModel, v glasses.View, id string) ([]glasses.Input, *glasses.Error) {
	s, ok := laidOut(m, v)
	if !ok {
		return nil, &glasses.Error{Code: glasses.CodeUnsupported, Message: m.ID + " has no panel with targets"}
	}
	if s.named(id, -1) < 0 {
		return nil, unreachable("no button or list entry on the panel has the id %q; %s", id, s.idWords())
	}
	focus := focusedID(s.view(v.Tree))
	moves, ok := s.path(m.MoveKind() != "", func() bool {
		return s.focus >= 0 && s.targets[s.focus].n.ID == id && s.shows(s.targets[s.focus])
	})
	switch {
	case ok:
		var inputs []glasses.Input
		for _, direction := range moves {
			inputs = append(inputs, glasses.Input{Kind: m.MoveKind(), Direction: direction})
		}
		return append(inputs, glasses.Input{Kind: m.SelectKind()}), nil
	case m.MoveKind() != "":
		return nil, unreachable("the wearer of %s cannot reach %q: %s up and down never makes it visible", m.ID,
			id, m.MoveKind())
	case focus == id:
		return nil, unreachable("the wearer of %s does not see %q, and no input (%s) scrolls to it", m.ID, id,
			strings.Join(m.Inputs, ", "))
	}
	return nil, unreachable("the wearer of %s cannot reach %q: the focus is on %q, and no input (%s) moves it", m.ID, id,
		focus, strings.Join(m.Inputs, ", "))
}

// path returns the shortest sequence of moves, up or down, after which done returns true. ok is false if there is none.
// If canMove is false, path checks only the current position. It changes the position of the scene.
func (s *scene) path(canMove bool, done func() bool) (moves []string, ok bool) {
	type place struct{ focus, scroll int }
	type visit struct {
		place
		from      int // index of the previous visit; -1 for the first
		direction string
	}
	visits := []visit{{place: place{s.focus, s.scroll()}, from: -1}}
	seen := map[place]bool{visits[0].place: true}
	for i := 0; i < len(visits); i++ {
		s.point(visits[i].focus, visits[i].scroll)
		if done() {
			for ; visits[i].from >= 0; i = visits[i].from {
				moves = append(moves, visits[i].direction)
			}
			slices.Reverse(moves)
			return moves, true
		}
		for _, direction := range []string{"down", "up"} {
			s.point(visits[i].focus, visits[i].scroll)
			s.move(direction)
			if at := (place{s.focus, s.scroll()}); canMove && !seen[at] {
				seen[at] = true
				visits = append(visits, visit{at, i, direction})
			}
		}
	}
	return nil, false
}

func unreachable(format string, args ...any) *glasses.Error {
	return &glasses.Error{Code: glasses.CodeUnreachable, Message: fmt.Sprintf(format, args...)}
}

// maxIDWords is the maximum number of IDs that an error lists.
const maxIDWords = 12

// idWords lists the IDs of the targets for an error.
func (s *scene) idWords() string {
	var ids []string
	for _, t := range s.targets {
		if t.n.ID != "" && len(ids) < maxIDWords {
			ids = append(ids, t.n.ID)
		}
	}
	switch len(ids) {
	case 0:
		return "the panel has no targets with an id"
	case maxIDWords:
		ids = append(ids, "...")
	}
	return "the ids are " + strings.Join(ids, ", ")
}

// view returns the scene as a view of its tree.
func (s *scene) view(tree *glasses.Node) glasses.View {
	return glasses.View{Tree: tree, Focus: s.focus, Scroll: s.scroll()}
}

// named returns the index of the target id, or -1 if there is none. If several targets have this ID, it prefers the
// target at index near, then the first.
func (s *scene) named(id string, near int) int {
	is := func(t *box) bool { return t.n.ID == id }
	switch {
	case id == "":
		return -1
	case near >= 0 && near < len(s.targets) && is(s.targets[near]):
		return near
	}
	return slices.IndexFunc(s.targets, is)
}

// at returns the index of the innermost target visible at panel pixel p, or -1 if there is none.
func (s *scene) at(p image.Point) int {
	hit := -1
	s.walk(func(b *box, r, clip image.Rectangle) {
		if b.target >= 0 && p.In(r.Intersect(clip)) {
			hit = b.target
		}
	})
	return hit
}

// shows reports whether a target is at least partly on the panel.
func (s *scene) shows(t *box) bool {
	shown := false
	s.walk(func(b *box, r, clip image.Rectangle) {
		shown = shown || b == t && !r.Intersect(clip).Empty()
	})
	return shown
}

// inSight reports whether the focused target is visible without scrolling the primary scroller.
func (s *scene) inSight() bool {
	b := s.primary
	return b == nil || s.focus < 0 || !b.has(s.targets[s.focus]) || b.reveal(s.targets[s.focus], b.offset) == b.offset
}

// reveal scrolls to the focused target.
func (s *scene) reveal() {
	if !s.inSight() {
		s.point(s.focus, s.primary.reveal(s.targets[s.focus], s.primary.offset))
	}
}

// move moves the focus or scrolls, as described at Navigate.
func (s *scene) move(direction string) {
	step := map[string]int{"down": 1, "right": 1, "up": -1, "left": -1}[direction]
	if s.focus >= 0 && s.targets[s.focus].isMirrored() && direction != "up" && direction != "down" {
		step = -step
	}
	next := s.focus + step
	switch b := s.primary; {
	case step == 0:
	case s.focus < 0 && len(s.targets) > 0:
		s.point(0, s.scroll())
		s.reveal()
	case next >= 0 && next < len(s.targets):
		s.point(next, s.scroll())
		s.reveal()
	case b != nil:
		by := b.page()
		if !b.paginates() { // one line of the previous page stays visible
			by = max(by-s.body.line, by/2, 1)
		}
		s.point(s.focus, b.offset+step*by)
	}
}
