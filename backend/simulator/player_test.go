package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/render/fonts"
	"github.com/service-dev/service/glasses/render/fonts/packs"
)

const (
	twoButtons = `{"tree":{"type":"column","children":[{"type":"button","id":"a","text":"First"},{"type":"button","id":"b","text":"Second"}]}}`
	oneText    = `{"tree":{"type":"text","text":"Hello"}}`
)

// stored returns a page's snapshot: Even G1, folded, a running stream, the second button focused.
func stored(t testing.TB, model, display string) string {
	t.Helper()
	tree, err := shown(display)
	if err != nil {
		t.Fatal(err)
	}
	s := glasses.Snapshot{DeviceModel: model, State: glasses.FreshState(), View: glasses.View{Tree: tree, Focus: 1}}
	s.State.Hinge, s.State.Running = glasses.HingeFolded, []string{glasses.StreamAudio}
	data, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestResume_TakesTheServicesState checks that the service's state takes precedence over the page's stored state,
// because another page may have acted as the glasses in between.
func TestResume_TakesTheServicesState(t *testing.T) {
	state := glasses.FreshState()
	state.Battery.Level, state.Permissions = 15, map[string]string{"camera": "denied", "microphone": "granted", "speech": "granted"}
	known, err := json.Marshal(state.ForApp(glasses.LinkConnected, glasses.ClockReal))
	if err != nil {
		t.Fatal(err)
	}
	var p player
	if err := p.start("even_g1", stored(t, "even_g1", twoButtons), twoButtons, string(known), "page-1"); err != nil {
		t.Fatal(err)
	}
	s := p.dev.Snapshot()
	if diff := cmp.Diff(state, s.State); diff != "" || s.View.Focus != 1 {
		t.Errorf("got focus %d, state differs: %s", s.View.Focus, diff)
	}
	if !p.agrees("even_g1", twoButtons, string(known)) {
		t.Error("agrees is false for the values that the device was started with")
	}
	p.dev.Control(0, glasses.SimState, []byte(`{"worn":false}`), nil)
	if p.agrees("even_g1", twoButtons, string(known)) {
		t.Error("agrees is true for an outdated state")
	}
	if err := p.start("even_g1", "", "", `{"battery":"full"}`, "page-1"); err == nil {
		t.Error("start accepted an invalid state")
	}
}

func TestResume(t *testing.T) {
	for _, c := range []struct {
		name            string
		stored, display string
		hinge           string
		focus           int
	}{
		{"nothing stored, clear", "", "null", glasses.HingeOpen, -1},
		{"nothing stored, shown", "", twoButtons, glasses.HingeOpen, 0},
		{"stored, the same shown", stored(t, "even_g1", twoButtons), twoButtons, glasses.HingeFolded, 1},
		{"stored, another shown since", stored(t, "even_g1", twoButtons), oneText, glasses.HingeFolded, -1},
		{"stored, cleared since", stored(t, "even_g1", twoButtons), "null", glasses.HingeFolded, -1},
		{"stored for another model", stored(t, "even_g2", twoButtons), twoButtons, glasses.HingeFolded, 0},
		{"stored is damaged", `{"state":[`, twoButtons, glasses.HingeOpen, 0},
	} {
		var p player
		if err := p.start("even_g1", c.stored, c.display, "", "page-1"); err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		s := p.dev.Snapshot()
		tree, _ := shown(c.display)
		if s.DeviceModel != "even_g1" || s.State.Hinge != c.hinge || s.View.Focus != c.focus || len(s.State.Running) > 0 {
			t.Errorf("%s: %+v", c.name, s)
		}
		if diff := cmp.Diff(tree, s.View.Tree); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
		if !p.agrees("even_g1", c.display, "") || p.agrees("even_g2", c.display, "") ||
			p.agrees("even_g1", `{"tree":{"type":"row"}}`, "") {
			t.Errorf("%s: agrees is true for a different model or display", c.name)
		}
	}
	var p player
	if err := p.start("no_such", "", "", "", "p"); err == nil {
		t.Error("start accepted an unknown model")
	}
}

func TestReading(t *testing.T) {
	var p player
	if err := p.start("rayban_display", "", twoButtons, "", "p"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(reading{Lines: []string{"First", "Second"}, Focus: "First"}, p.read()); diff != "" {
		t.Error(diff)
	}
	if err := p.handle(1,
		[]byte(`{"v":1,"type":"sim.input","id":"c","at":1,"payload":{"kind":"navigate","direction":"down"}}`),
		false); err != nil {
		t.Fatal(err)
	}
	if r := p.read(); r.Focus != "Second" {
		t.Errorf("after moving down: got %+v, want the focus on Second", r)
	}
	if err := p.handle(1, []byte{0, 9, '{'}, true); err == nil {
		t.Error("a truncated binary frame was accepted")
	}
	if err := p.start("system_audio", "", twoButtons, "", "p"); err != nil || len(p.read().Lines) > 0 {
		t.Errorf("glasses without a panel read %+v, %v; want no lines", p.read(), err)
	}
}

// The glasses start with any content of the browser's storage.
func FuzzResume(f *testing.F) {
	f.Add("", twoButtons)
	f.Add(stored(f, "even_g1", twoButtons), twoButtons)
	f.Add(`{"state":{"permissions":null},"view":{"focus":-9,"scroll":99999999}}`, oneText)
	f.Fuzz(func(t *testing.T, stored, display string) {
		var p player
		if err := p.start("rayban_display", stored, display, "", "p"); err != nil {
			return
		}
		p.read()
		if !p.agrees("rayban_display", display, "") {
			t.Error("the glasses do not show the service's display")
		}
	})
}

// The page fetches only the fonts that a text needs, the best one first, and requests another if characters are still
// missing.
func TestWanted_NamesTheFontsOfATextUntilThePageHasThem(t *testing.T) {
	var p player
	if err := p.start("rayban_display", "", "", "", "page-1"); err != nil {
		t.Fatal(err)
	}
	show := func(text string) []byte {
		return []byte(`{"v":1,"type":"display.show","id":"a","at":0,"payload":{"tree":{"type":"text",` +
			`"text":"` + text + `"}}}`)
	}
	thai, err := packs.Read("thai-400")
	if err != nil {
		t.Fatal(err)
	}
	fonts.Use(nil) // as in the page; packs is imported only for the file
	t.Cleanup(func() { fonts.Use(packs.Read) })
	for _, step := range []struct {
		text, want string
		file       []byte
	}{
		{"Latin, Ελληνικά, кириллица", "", nil},
		{"ไทย", "thai-400", thai},
		{"ไทย", "", nil},
		{"✓", "symbols-400", nil}, // before the fonts of any script
		{"✓", "emoji-400", nil},
		{"你", "chinese-simplified-400", nil},
		{"你", "chinese-traditional-400", nil},
	} {
		if got := strings.Join(p.wanted(show(step.text)), " "); got != step.want {
			t.Errorf("%s: wants %q, want %q", step.text, got, step.want)
		}
		if step.want != "" {
			if err := fonts.Add(step.want, step.file); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := p.wanted([]byte(`{"v":1,"type":"display.clear","id":"b","at":0}`)); len(got) > 0 {
		t.Errorf("a clear panel needs the fonts %v, want none", got)
	}
	if err := fonts.Add("thai-700", []byte("OTTO")); err == nil {
		t.Error("an invalid font file was accepted")
	}
}
