package render_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/render"
)

// kinds returns "kind path" of each finding of a new tree.
func kinds(model string, tree glasses.Node) []string {
	m, _ := glasses.Model(model)
	found := []string{}
	for _, f := range render.Fit(m, render.Clamp(m, glasses.View{Tree: &tree})) {
		found = append(found, f.Kind+" "+f.Path)
	}
	return found
}

func text(s string) glasses.Node { return glasses.Node{Type: glasses.NodeText, Text: s} }

func button(id, s string) glasses.Node {
	return glasses.Node{Type: glasses.NodeButton, ID: id, Text: s}
}

func column(children ...glasses.Node) glasses.Node {
	return glasses.Node{Type: glasses.NodeColumn, Children: children}
}

func TestFit_ReportsWhatTheWearerCannotSeeOrReach(t *testing.T) {
	battery := column(text("Workout"), text("Round 3 of 8"), text("00:24"), text("rest"), glasses.Node{
		Type: glasses.NodeRow, Children: []glasses.Node{{Type: glasses.NodeIcon, Icon: "battery"}, text("Battery 14 %")}})
	battery.Gap, battery.Padding = 2, 8
	items := glasses.Node{Type: glasses.NodeList, Overflow: glasses.OverflowScroll}
	for i := range 12 {
		items.Children = append(items.Children, text(fmt.Sprintf("item %d", i)))
	}
	paged := glasses.Node{Type: glasses.NodeColumn, Overflow: glasses.OverflowPaginate,
		Children: []glasses.Node{text("one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\neleven\ntwelve\nthirteen\n" +
			"fourteen\nfifteen\nsixteen\nseventeen\neighteen\nnineteen\ntwenty\nlast")}}
	narrow := glasses.Node{Type: glasses.NodeRow, Children: []glasses.Node{button("a", "Wednesdays"), text("x"),
		{Type: glasses.NodeProgress, Width: 470}}}
	for _, test := range []struct {
		name, model string
		tree        glasses.Node
		want        []string
	}{
		{"a row below the panel", "even_g1", battery, []string{"clipped tree.children[4].children[0]",
			"clipped tree.children[4].children[1]"}},
		{"the same on a larger panel", "rayban_display", battery, []string{}},
		{"a list that is scrolled", "rayban_display", items, []string{}},
		{"pages", "even_g2", paged, []string{}},
		{"pages that nobody turns", "brilliant_frame", paged, []string{"clipped tree.children[0]"}},
		{"two buttons where the focus moves", "even_g2", column(button("a", "A"), button("b", "B")), []string{}},
		{"two buttons where it cannot", "even_g1", column(button("a", "A"), button("b", "B")),
			[]string{"unreachable tree.children[1]"}},
		{"a button that is cut", "even_g1", column(text("1"), text("2"), text("3"), text("4"), button("a", "A")),
			[]string{"cut tree.children[4]"}},
		{"a word that is broken", "rayban_display", narrow, []string{"broken_word tree.children[0]"}},
		{"an icon below the panel", "even_g1", column(text("Turn left"),
			glasses.Node{Type: glasses.NodeIcon, Icon: "arrow-left", Width: 300}), []string{"clipped tree.children[1]"}},
		{"an icon wider than its list", "even_g1", glasses.Node{Type: glasses.NodeRow, Children: []glasses.Node{
			{Type: glasses.NodeList, Children: []glasses.Node{{Type: glasses.NodeIcon, ID: "a", Icon: "check", Width: 90}}},
			{Type: glasses.NodeProgress, Width: 540}}}, []string{"clipped tree.children[0].children[0]"}},
		{"an icon that does not exist", "even_g1", glasses.Node{Type: glasses.NodeIcon, Icon: "nope"},
			[]string{"unknown_icon tree"}},
		{"no panel", "rayban_meta", column(text("x")), []string{}},
	} {
		if diff := cmp.Diff(test.want, kinds(test.model, test.tree)); diff != "" {
			t.Errorf("%s: %s", test.name, diff)
		}
	}
}

// TestFit_IsBoundedForLongTexts checks a case that would take minutes if every scroll position were examined.
func TestFit_IsBoundedForLongTexts(t *testing.T) {
	m, _ := glasses.Model("rayban_display")
	tree := glasses.Node{Type: glasses.NodeList, Overflow: glasses.OverflowPaginate, Padding: 4000}
	for range 400 {
		tree.Children = append(tree.Children, text("x\nx\nx\nx\nx\nx\nx\nx\nx\nx\nx\nx\nx\nx\nx\nx\nx\nx\nx\nx\nx\nx"))
	}
	if n := len(render.Fit(m, render.Clamp(m, glasses.View{Tree: &tree}))); n == 0 {
		t.Error("there is no finding for a tree whose padding fills the panel")
	}
}

func BenchmarkFit(b *testing.B) {
	for _, id := range []string{"even_g1", "rayban_display"} {
		m, _ := glasses.Model(id)
		for _, g := range goldens() {
			if g.name == "list" || g.name == "text" {
				v := render.Clamp(m, g.of(b))
				b.Run(id+"/"+g.name, func(b *testing.B) {
					for b.Loop() {
						render.Fit(m, v)
					}
				})
			}
		}
	}
}
