package session

import (
	"bytes"
	"testing"

	"github.com/service-dev/service/proto/glasses"
	"github.com/service-dev/service/proto/glasses/render"
	"github.com/service-dev/service/proto/glasses/scenario"
)

// TestDisplay_NothingIsVisibleOnDarkGlasses walks through every state of wear and hinge on every panel: a text is
// visible exactly when the picture is not black.
func TestDisplay_NothingIsVisibleOnDarkGlasses(t *testing.T) {
	tree := glasses.Node{Type: glasses.NodeColumn, Children: []glasses.Node{{Type: glasses.NodeText, Text: "Hello"},
		{Type: glasses.NodeButton, ID: "ok", Text: "OK"}, {Type: glasses.NodeImage, Alt: "map", Data: "AAAA", Width: 9}}}
	for _, m := range glasses.Models() {
		if m.Panel == nil {
			continue
		}
		clear := render.PNG(render.Draw(m, glasses.View{Focus: -1}))
		for _, worn := range []bool{true, false} {
			for _, hinge := range []string{glasses.HingeOpen, glasses.HingeFolded} {
				state := glasses.FreshState()
				state.Worn, state.Hinge = worn, hinge
				d := NewDisplay(m, state, render.Clamp(m, glasses.View{Tree: &tree}))
				lit := !bytes.Equal(d.Picture(), clear)
				seen := len(d.Unmet(scenario.ExpectDisplay{Text: []string{"Hello", "OK"}, Images: []string{"map"}})) == 0
				gone := len(d.Unmet(scenario.ExpectDisplay{Absent: []string{"Hello", "OK", "map"}, AllowPartial: true})) == 0
				if lit != (worn && hinge == glasses.HingeOpen) || seen != lit || gone == lit {
					t.Errorf("%s, worn %v, %s: lit %v, seen %v, gone %v", m.ID, worn, hinge, lit, seen, gone)
				}
			}
		}
	}
}

// A text of several lines can be asserted by the lines that are on the panel.
func TestDisplay_ReadsLinesOfALongText(t *testing.T) {
	m, _ := glasses.Model("even_g1")
	tree := glasses.Node{Type: glasses.NodeText, Overflow: glasses.OverflowClip, Text: "one\ntwo\nthree\nfour\nfive\nsix\nseven"}
	d := NewDisplay(m, glasses.FreshState(), render.Clamp(m, glasses.View{Tree: &tree}))
	if unmet := d.Unmet(scenario.ExpectDisplay{Text: []string{"one", "five"}, Absent: []string{"six"}}); len(unmet) > 0 {
		t.Error(unmet)
	}
	if len(d.Unmet(scenario.ExpectDisplay{Text: []string{"five\nsix"}, AllowPartial: true})) == 0 {
		t.Error("a line below the panel counts as seen")
	}
	if len(d.Text()) != 0 {
		t.Errorf("a text that is cut is listed as readable: %q", d.Text())
	}
}
