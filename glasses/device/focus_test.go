package device_test

import (
	"encoding/json"
	"fmt"
	"image"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/device"
	"github.com/service-dev/service/glasses/guide"
	"github.com/service-dev/service/glasses/render"
)

const twoButtons = `{"tree":{"type":"column","children":[{"type":"button","id":"go","text":"Go"},{"type":"button","id":"no","text":"No"}]}}`

// focus returns the id of the focused target; "" if there is none.
func (b *bench) focus() string {
	v := b.d.Snapshot().View
	if targets := render.Targets(b.d.Model(), v); v.Focus >= 0 {
		return targets[v.Focus].ID
	}
	return ""
}

func TestShow_KeepsTheFocusUntilItResets(t *testing.T) {
	b := newBench(t, "rayban_display")
	for _, step := range []struct{ typ, payload, want string }{
		{"display.show", twoButtons, "go"},
		{"sim.input", `{"kind":"navigate","direction":"down"}`, "no"},
		{"display.show", twoButtons, "no"},
		{"display.show", strings.Replace(twoButtons, "Go", "Go now", 1), "no"},
		{"display.show", list, "one"},
		{"display.show", twoButtons, "go"},
		{"display.show", strings.Replace(twoButtons, `{"type"`, `{"focus":"no","type"`, 1), "no"},
		{"display.show", twoButtons, "no"},
		{"display.clear", "", ""},
		{"display.show", twoButtons, "go"},
		{"sim.input", `{"target":"no"}`, "no"},
		{"sim.state", `{"hinge":"folded"}`, "no"},
		{"sim.state", `{"hinge":"open"}`, "no"},
		{"display.show", twoButtons, "no"},
		{"sim.device", `{"deviceModel":"even_g2"}`, ""},
		{"display.show", twoButtons, "go"},
	} {
		b.must(step.typ, step.payload)
		if got := b.focus(); got != step.want {
			t.Errorf("after %s %s the focus is on %q, want %q", step.typ, step.payload, got, step.want)
		}
	}
	for _, focus := range []string{"none", "ü", strings.Repeat("x", 200)} {
		payload := strings.Replace(twoButtons, `{"type"`, `{"focus":"`+focus+`","type"`, 1)
		if got := b.code(b.do("display.show", payload)); got != "bad_payload" {
			t.Errorf("a tree with the unknown focus %q: %s, want bad_payload", focus, got)
		}
	}
	inner := strings.Replace(twoButtons, `[{`, `[{"focus":"go",`, 1)
	if got := b.code(b.do("display.show", inner)); got != "bad_payload" {
		t.Errorf("a focus below the root: %s, want bad_payload", got)
	}
}

func TestInputByTarget(t *testing.T) {
	down := func(kind string) string {
		return fmt.Sprintf(`input{"kind":%q,"x":0,"y":0,"direction":"down","target":"no"}`, kind)
	}
	for model, want := range map[string][]string{
		"rayban_display":     {down("navigate"), `input{"kind":"select","x":0,"y":0,"target":"no"}`},
		"even_g2":            {down("navigate"), `input{"kind":"tap","x":0,"y":0,"target":"no"}`},
		"android_xr_display": {down("swipe"), `input{"kind":"tap","x":0,"y":0,"target":"no"}`},
		"even_g1":            nil, "brilliant_frame": nil, "brilliant_halo": nil,
	} {
		b := newBench(t, model)
		b.must("display.show", twoButtons)
		if want == nil {
			if got := b.code(b.do("sim.input", `{"target":"no"}`)); got != "unreachable" || len(b.types()) > 0 {
				t.Errorf("%s: %s", model, got)
			}
			b.must("display.show", strings.Replace(twoButtons, `{"type"`, `{"focus":"no","type"`, 1))
			kind := b.d.Model().SelectKind()
			want = []string{fmt.Sprintf(`input{"kind":%q,"x":0,"y":0,"target":"no"}`, kind)}
		}
		b.must("sim.input", `{"target":"no"}`)
		equal(t, model, b.types(), want)
	}
	b := newBench(t, "rayban_display")
	b.must("display.show", twoButtons)
	refused := func(typ, payload, code, word string) {
		t.Helper()
		r := b.result(b.do(typ, payload))
		if r.Error == nil || r.Error.Code != code || !strings.Contains(r.Error.Message, word) {
			t.Errorf("%s: error %+v, want %s with %q", payload, r.Error, code, word)
		}
	}
	refused("sim.input", `{"target":"gone"}`, "unreachable", "the ids are go, no")
	refused("sim.input", `{"target":"go","x":3}`, "bad_payload", "target")
	refused("sim.input", `{"target":"two words"}`, "bad_payload", "target")
	refused("sim.input", `{}`, "bad_payload", "kind")
	for _, state := range []struct{ patch, undo, code string }{
		{`{"hinge":"folded"}`, `{"hinge":"open"}`, "hinge_closed"}, {`{"worn":false}`, `{"worn":true}`, "paused"},
		{`{"link":"lost"}`, `{"link":"connected"}`, "not_connected"},
	} {
		b.must("sim.state", state.patch)
		refused("sim.input", `{"target":"go"}`, state.code, "")
		b.must("sim.state", state.undo)
	}
	b.must("display.clear", "")
	refused("sim.input", `{"target":"go"}`, "unreachable", "no targets")
	b.must("sim.device", `{"deviceModel":"rayban_meta"}`)
	refused("sim.input", `{"target":"go"}`, "unsupported", "no panel")
}

// TestInputByTarget_AgreesWithASearch compares selecting by id with a search that tries every input on random trees.
// Selecting a target by id succeeds exactly if some sequence of inputs selects it while it is visible, and then uses
// the fewest inputs.
func TestInputByTarget_AgreesWithASearch(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 32))
	reached, refused, longest := 0, 0, 0
	for _, m := range glasses.Models() {
		for range 10 {
			if m.Panel == nil {
				continue
			}
			tree := randomTargets(r, 3)
			view := render.Clamp(m, glasses.View{Tree: &tree, Focus: r.IntN(8), Scroll: r.IntN(2) * r.IntN(300)})
			fewest := search(m, view)
			for _, id := range append(ids(&tree), "absent") {
				events, code := selectByID(t, m, view, id)
				want, ok := fewest[id]
				switch {
				case ok && (code != "" || len(events) != want || events[want-1].Target != id):
					t.Fatalf("%s: %q needs %d inputs, got code %s and events %+v", m.ID, id, want, code, events)
				case !ok && (code != glasses.CodeUnreachable || len(events) > 0):
					t.Fatalf("%s: %q is unreachable, got code %q and events %+v", m.ID, id, code, events)
				case ok:
					reached, longest = reached+1, max(longest, want)
				default:
					refused++
				}
			}
		}
	}
	if t.Logf("%d reached, %d refused, at most %d inputs", reached, refused, longest); reached < 100 || refused < 100 ||
		longest < 5 {
		t.Error("the random trees are too simple to test anything")
	}
}

// wearing returns glasses that show the given view.
func wearing(m glasses.DeviceModel, v glasses.View) *device.Device {
	return device.New(m, device.Options{Snapshot: &glasses.Snapshot{DeviceModel: m.ID, State: glasses.FreshState(),
		View: v}})
}

// use performs an input, and returns the events that it causes and the code if it is refused.
func use(d *device.Device, in glasses.Input) (events []glasses.Input, code string) {
	payload, _ := json.Marshal(in)
	result := d.Control(0, glasses.SimInput, payload, nil)
	for _, out := range d.Take() {
		var event glasses.Input
		_ = json.Unmarshal(out.Frame.Payload, &event)
		events = append(events, event)
	}
	if result.Error != nil {
		code = result.Error.Code
	}
	return events, code
}

func selectByID(t *testing.T, m glasses.DeviceModel, v glasses.View, id string) ([]glasses.Input, string) {
	t.Helper()
	events, code := use(wearing(m, v), glasses.Input{Target: id})
	for _, e := range events {
		if !m.HasInput(e.Kind) || e.X != 0 || e.Y != 0 {
			t.Fatalf("%s: the model does not have the input %+v", m.ID, e)
		}
	}
	return events, code
}

// search returns, for each id, the lowest number of inputs that select the visible target. It tries every input.
func search(m glasses.DeviceModel, start glasses.View) map[string]int {
	type place struct{ focus, scroll int }
	fewest := map[string]int{}
	seen := map[place]bool{{start.Focus, start.Scroll}: true}
	for round, views := 1, []glasses.View{start}; len(views) > 0; round++ {
		var next []glasses.View
		for _, v := range views {
			for _, in := range everyInput(m) {
				d := wearing(m, v)
				events, _ := use(d, in)
				after := d.Snapshot().View
				id := events[0].Target
				if _, known := fewest[id]; in.Direction == "" && id != "" && !known && inSight(m, after) {
					fewest[id] = round
				}
				if at := (place{after.Focus, after.Scroll}); !seen[at] {
					seen[at] = true
					next = append(next, after)
				}
			}
		}
		views = next
	}
	return fewest
}

func everyInput(m glasses.DeviceModel) []glasses.Input {
	var list []glasses.Input
	for _, kind := range m.Inputs {
		if kind != glasses.InputNavigate && kind != glasses.InputSwipe {
			list = append(list, glasses.Input{Kind: kind})
			continue
		}
		for _, direction := range []string{"up", "down", "left", "right"} {
			list = append(list, glasses.Input{Kind: kind, Direction: direction})
		}
	}
	return list
}

// inSight reports whether a pixel of the panel belongs to the focused target or to its content.
func inSight(m glasses.DeviceModel, v glasses.View) bool {
	target := render.Targets(m, v)[v.Focus]
	place := target.Rect.Intersect(image.Rect(0, 0, m.Panel.Width, m.Panel.Height))
	for y := place.Min.Y; y < place.Max.Y; y++ {
		for x := place.Min.X; x < place.Max.X; x += max(place.Dx()/7, 1) {
			if hit, ok := render.Hit(m, v, x, y); ok && strings.HasPrefix(hit.Path+".", target.Path+".") {
				return true
			}
		}
	}
	return false
}

func ids(tree *glasses.Node) []string {
	var list []string
	for _, n := range tree.Targets() {
		if !slices.Contains(list, n.ID) {
			list = append(list, n.ID)
		}
	}
	return list
}

// randomTargets returns a random tree of buttons, lists and texts. Many of the trees do not fit, and some parts are in
// scrollers.
func randomTargets(r *rand.Rand, depth int) glasses.Node {
	n := glasses.Node{
		Type: []string{"column", "row", "list", "text", "button"}[r.IntN(5)],
		Gap:  r.IntN(9), Padding: r.IntN(12), Grow: r.IntN(2),
		Text:     strings.Repeat("word ", r.IntN(25)),
		Overflow: []string{"", "scroll", "paginate"}[r.IntN(3)],
		ID:       fmt.Sprintf("n%d", r.IntN(60)),
	}
	if depth == 3 {
		n.Type = []string{"column", "list"}[r.IntN(2)]
	}
	if depth > 0 && n.Type != "text" && n.Type != "button" {
		for range 1 + r.IntN(4) {
			n.Children = append(n.Children, randomTargets(r, depth-1))
		}
	}
	return n
}

// TestFocusWords_AreWhatTheGlassesDo compares the guide's sentence with the behaviour of each model on a list of two
// entries.
func TestFocusWords_AreWhatTheGlassesDo(t *testing.T) {
	for _, m := range glasses.Models() {
		if m.Panel == nil {
			if words := guide.FocusWords(m); words != "" {
				t.Errorf("%s: %q", m.ID, words)
			}
			continue
		}
		targets := map[string]string{} // for each kind of input, on a list whose first entry has the focus
		for _, in := range everyInput(m) {
			b := newBench(t, m.ID)
			b.must("display.show", list)
			events, _ := use(b.d, in)
			if in.Direction == "" || in.Direction == "down" {
				targets[in.Kind] = events[0].Target
			}
		}
		want := "tap without x and y selects the focused target; "
		if targets["tap"] == "" && targets["select"] == "one" {
			want = "select selects the focused target, tap without x and y has no target; "
		}
		switch "two" {
		case targets["navigate"]:
			want += "navigate moves the focus, and scrolls where there is no next target"
		case targets["swipe"]:
			want += "swipe moves the focus, and scrolls where there is no next target"
		default:
			want += "no input moves the focus or scrolls: only the first target, or the tree's focus, can be selected"
		}
		if got := guide.FocusWords(m); got != want {
			t.Errorf("%s: the guide says %q, but the glasses behave as %q", m.ID, got, want)
		}
	}
}
