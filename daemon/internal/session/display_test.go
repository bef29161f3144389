package session

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/render"
	"github.com/service-dev/service/glasses/scenario"
)

// TestDisplay_NothingIsVisibleOnDarkGlasses tries every state of wear and hinge on every panel: a text is visible
// exactly when the picture is not black.
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
					t.Errorf("%s, worn %v, hinge %s: picture lit %v, text seen %v, text reported missing %v",
						m.ID, worn, hinge, lit, seen, gone)
				}
			}
		}
	}
}

// A multi-line text can be asserted by the lines that are visible on the panel.
func TestDisplay_ReadsLinesOfALongText(t *testing.T) {
	m, _ := glasses.Model("even_g1")
	tree := glasses.Node{Type: glasses.NodeText, Overflow: glasses.OverflowClip, Text: "one\ntwo\nthree\nfour\nfive\nsix\nseven"}
	d := NewDisplay(m, glasses.FreshState(), render.Clamp(m, glasses.View{Tree: &tree}))
	if unmet := d.Unmet(scenario.ExpectDisplay{Text: []string{"one", "five"}, Contains: true,
		Absent: []string{"six"}}); len(unmet) > 0 {
		t.Error(unmet)
	}
	if len(d.Unmet(scenario.ExpectDisplay{Text: []string{"five\nsix"}, Contains: true, AllowPartial: true})) == 0 {
		t.Error("a line below the panel counts as visible")
	}
	if len(d.Text()) != 0 {
		t.Errorf("a cut text is listed as readable: %q", d.Text())
	}
}

// Texts are matched in order, even two within one text, and a failure lists the texts in the order in which they
// appear.
func TestDisplay_ReadsInOrder(t *testing.T) {
	m, _ := glasses.Model("even_g1")
	tree := glasses.Node{Type: glasses.NodeColumn}
	for _, text := range []string{"Milk", "Eggs and ham", "Milk again"} {
		tree.Children = append(tree.Children, glasses.Node{Type: glasses.NodeText, Text: text})
	}
	d := NewDisplay(m, glasses.FreshState(), render.Clamp(m, glasses.View{Tree: &tree}))
	for _, test := range []struct {
		text []string
		says []string
	}{
		{[]string{"Milk", "Eggs"}, nil},
		{[]string{"Eggs", "ham", "Milk"}, nil},
		{[]string{"Milk", "Eggs", "Milk", "again"}, nil},
		{[]string{"ham", "Eggs"}, []string{
			`"Eggs" does not come after "ham"; from top to bottom: 1. "Milk", 2. "Eggs and ham", 3. "Milk again"`}},
		{[]string{"again", "Milk"}, []string{
			`"Milk" does not come after "again"; from top to bottom: 1. "Milk", 2. "Eggs and ham", 3. "Milk again"`}},
		{[]string{"Eggs", "Eggs"}, []string{
			`"Eggs" does not come after "Eggs"; from top to bottom: 1. "Milk", 2. "Eggs and ham", 3. "Milk again"`}},
	} {
		unmet := d.Unmet(scenario.ExpectDisplay{Text: test.text, Contains: true, InOrder: true})
		if !slices.Equal(unmet, test.says) {
			t.Errorf("%q: %q", test.text, unmet)
		}
		if unmet := d.Unmet(scenario.ExpectDisplay{Text: test.text, Contains: true}); len(unmet) > 0 {
			t.Errorf("%q in any order: unmet %q, want none", test.text, unmet)
		}
	}
	indented := NewDisplay(m, glasses.FreshState(), render.Clamp(m, glasses.View{Tree: &glasses.Node{
		Type: glasses.NodeText, Text: "  Milk\n\n\n\n\n\nEggs"}}))
	if unmet := indented.Unmet(scenario.ExpectDisplay{Text: []string{"  Milk"}, InOrder: true, AllowPartial: true,
		Contains: true}); len(unmet) != 1 {
		t.Errorf("a text without its spaces: unmet %q, want one sentence", unmet)
	}
	unmet := d.Unmet(scenario.ExpectDisplay{Text: []string{"Milk", "Bread"}, InOrder: true})
	if len(unmet) != 1 || !strings.Contains(unmet[0], "cannot be read") {
		t.Errorf("a missing text: unmet %q, want one sentence", unmet)
	}
}

func TestDisplay_ReadsEveryScript(t *testing.T) {
	m, _ := glasses.Model("rayban_display")
	for _, text := range []string{"你好，世界", "こんにちは", "안녕하세요", "مرحبا", "שלום", "नमस्ते", "สวัสดี", "Tiếng Việt", "✓ 🙂"} {
		tree := glasses.Node{Type: glasses.NodeText, Text: text}
		d := NewDisplay(m, glasses.FreshState(), render.Clamp(m, glasses.View{Tree: &tree}))
		if got := d.Text(); len(got) != 1 || got[0] != text || len(d.Findings()) > 0 {
			t.Errorf("%q: the wearer reads %q, findings %+v; want the same text without findings", text, got, d.Findings())
		}
	}
}

// Files of version 1 compare as before: a part of a text is enough, and icons do not count as present.
func TestDisplay_ComparesByTheVersionOfTheScenario(t *testing.T) {
	m, _ := glasses.Model("even_g1")
	tree := glasses.Node{Type: glasses.NodeColumn, Children: []glasses.Node{{Type: glasses.NodeText, Text: "42 m"},
		{Type: glasses.NodeIcon, Icon: "battery"}}}
	d := NewDisplay(m, glasses.FreshState(), render.Clamp(m, glasses.View{Tree: &tree}))
	const file = `{"scenario":VERSION,"name":"x","steps":[{"expectDisplay":{"text":["2 m"]}},
		{"expectDisplay":{"absent":["battery"]}}]}`
	unmetOf := func(file string) (unmet []string) {
		s, err := scenario.Parse([]byte(file))
		if err != nil {
			t.Fatal(err)
		}
		for _, step := range s.Steps {
			unmet = append(unmet, d.Unmet(*step.ExpectDisplay)...)
		}
		return unmet
	}
	old := strings.Replace(file, "VERSION", "1", 1)
	if unmet := unmetOf(old); len(unmet) > 0 {
		t.Errorf("version 1: %q, want none", unmet)
	}
	clipped := glasses.Node{Type: glasses.NodeIcon, Icon: "check", Width: 300}
	for _, loose := range []bool{true, false} {
		if misfits := Misfits(&clipped, []glasses.DeviceModel{m}, loose); len(misfits) > 0 == loose {
			t.Errorf("loose %v: %q", loose, misfits)
		}
	}
	want := []string{`"2 m" is only a part of the text "42 m"; with contains: true, parts are enough`,
		`"battery" can be seen`}
	if unmet := unmetOf(strings.Replace(file, "VERSION", "2", 1)); !slices.Equal(unmet, want) {
		t.Errorf("version 2: %q, want %q", unmet, want)
	}

	// The texts that a run of an old file asserts keep their meaning in a new recording.
	s, err := scenario.Parse([]byte(old))
	if err != nil {
		t.Fatal(err)
	}
	recording, err := scenario.Scenario{Name: "y", Steps: s.Steps[:1]}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if unmet := unmetOf(string(recording)); len(unmet) > 0 {
		t.Errorf("recorded as\n%s\n%q, want none", recording, unmet)
	}
}
