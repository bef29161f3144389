package render_test

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/render"
)

// buttons returns a column of buttons with these ids.
func buttons(ids ...string) *glasses.Node {
	tree := &glasses.Node{Type: glasses.NodeColumn}
	for _, id := range ids {
		tree.Children = append(tree.Children, glasses.Node{Type: glasses.NodeButton, ID: id, Text: "button " + id})
	}
	return tree
}

func TestShow_KeepsTheFocusOfAnIDThatSurvives(t *testing.T) {
	m, _ := glasses.Model("rayban_display")
	withFocus := func(tree *glasses.Node, id string) *glasses.Node {
		tree.Focus = id
		return tree
	}
	for name, test := range map[string]struct {
		before *glasses.Node
		focus  int
		after  *glasses.Node
		want   int
	}{
		"first tree":                {nil, -1, buttons("a", "b"), 0},
		"first tree with a focus":   {nil, -1, withFocus(buttons("a", "b"), "b"), 1},
		"same place":                {buttons("a", "b"), 1, buttons("a", "b"), 1},
		"another place":             {buttons("a", "b"), 1, buttons("b", "c", "a"), 0},
		"gone":                      {buttons("a", "b", "c"), 2, buttons("a", "b"), 0},
		"focus of the tree wins":    {buttons("a", "b"), 1, withFocus(buttons("a", "b", "c"), "c"), 2},
		"focus of the tree is gone": {buttons("a", "b"), 1, withFocus(buttons("a", "b"), "x"), 0},
		"no targets":                {buttons("a", "b"), 1, &glasses.Node{Type: glasses.NodeText, Text: "text"}, -1},
		"without ids":               {buttons("", ""), 1, buttons("", ""), 0},
		"the same id twice":         {buttons("a", "a", "a"), 1, buttons("a", "a", "a"), 1},
	} {
		v := render.Show(m, glasses.View{Tree: test.before, Focus: test.focus}, test.after)
		if v.Tree != test.after || v.Focus != test.want || v.Scroll != 0 {
			t.Errorf("%s: focus %d, scroll %d, want focus %d", name, v.Focus, v.Scroll, test.want)
		}
	}
	headset, _ := glasses.Model("system_audio")
	if v := render.Show(headset, glasses.View{Focus: -1}, buttons("a")); v.Focus != -1 {
		t.Errorf("without a panel the focus is %d, want -1", v.Focus)
	}
}

// Showing the same tree again changes nothing at any scroll position, as long as a target with an id has the focus.
func TestShow_OfTheSameTreeChangesNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	kept := 0
	for _, m := range panels() {
		for range 60 {
			tree := randomTree(r, 4)
			v := render.Clamp(m, glasses.View{Tree: &tree, Focus: r.IntN(12), Scroll: r.IntN(2) * r.IntN(900)})
			if v.Focus < 0 {
				continue
			}
			again := tree
			if diff := cmp.Diff(v, render.Show(m, v, &again)); diff != "" {
				t.Fatalf("%s: %s", m.ID, diff)
			}
			kept++
		}
	}
	if kept < 100 {
		t.Fatalf("only %d views had a focus, want at least 100", kept)
	}
}

// A focused entry stays visible when entries before it are added or removed.
func TestShow_ScrollsToTheFocusThatItKeeps(t *testing.T) {
	for _, m := range panels() {
		for _, overflow := range []string{glasses.OverflowScroll, glasses.OverflowPaginate} {
			long := list(25, overflow)
			v := render.Clamp(m, glasses.View{Tree: &long})
			for range 15 {
				v = render.Navigate(m, v, "down")
			}
			for _, cut := range []int{0, 1, 9, 15} {
				shorter := long
				shorter.Children = long.Children[cut:]
				after := render.Show(m, v, &shorter)
				if after.Focus != 15-cut {
					t.Fatalf("%s %s: with %d entries less the focus moved to %d", m.ID, overflow, cut, after.Focus)
				}
				seen(t, m, after, overflow)
				back := render.Show(m, after, &long)
				if back.Focus != 15 {
					t.Fatalf("%s %s: with the entries back the focus is %d, want 15", m.ID, overflow, back.Focus)
				}
				seen(t, m, back, overflow)
			}
			named := long
			named.Focus = "entry-20"
			after := render.Show(m, v, &named)
			if after.Focus != 20 {
				t.Fatalf("%s %s: the focus is %d, want 20, as the tree says", m.ID, overflow, after.Focus)
			}
			seen(t, m, after, overflow)
		}
	}
}
