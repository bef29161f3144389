package device_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/device"
	"github.com/service-dev/service/glasses/render"
)

const list = `{"tree":{"type":"list","children":[{"type":"text","id":"one","text":"One"},{"type":"text","id":"two","text":"Two"}]}}`

func TestInput(t *testing.T) {
	b := newBench(t, "rayban_display")
	b.must("sim.input", `{"kind":"select","target":"forged"}`)
	equal(t, "a clear panel", b.types(), []string{`input{"kind":"select","x":0,"y":0}`})
	b.must("display.show", list)
	b.must("sim.input", `{"kind":"select"}`)
	b.must("sim.input", `{"kind":"navigate","direction":"down"}`)
	b.must("sim.input", `{"kind":"tap","x":20,"y":5}`)
	b.must("sim.input", `{"kind":"tap","x":599,"y":599}`)
	b.must("sim.input", `{"kind":"select"}`)
	equal(t, "a list", b.types(), []string{`input{"kind":"select","x":0,"y":0,"target":"one"}`,
		`input{"kind":"navigate","x":0,"y":0,"direction":"down","target":"two"}`, `input{"kind":"tap","x":20,"y":5,"target":"one"}`,
		`input{"kind":"tap","x":599,"y":599}`, `input{"kind":"select","x":0,"y":0,"target":"one"}`})
	if got := b.code(b.do("sim.input", `{"kind":"hold"}`)); got != "unsupported" {
		t.Errorf("hold: %s", got)
	}
	b.must("sim.state", `{"link":"lost"}`)
	if got := b.code(b.do("sim.input", `{"kind":"tap"}`)); got != "not_connected" {
		t.Errorf("an input while out of reach: %s, want not_connected", got)
	}
	one := newBench(t, "even_g1")
	one.must("display.show", list)
	one.must("sim.input", `{"kind":"tap","side":"left"}`)
	equal(t, "a model without select", one.types(),
		[]string{`input{"kind":"tap","x":0,"y":0,"side":"left","target":"one"}`})
}

// The glasses keep their last picture while the link is lost, and clear the panel when it is restored.
func TestLostLink_ClearsThePanelWhenItIsBack(t *testing.T) {
	for _, test := range []struct {
		states  []string
		isClear bool
	}{
		{[]string{"lost"}, false}, {[]string{"lossy"}, false}, {[]string{"lossy", "connected"}, false},
		{[]string{"lost", "connected"}, true}, {[]string{"lost", "lossy"}, true},
	} {
		b := newBench(t, "rayban_display")
		b.must("display.show", list)
		for _, s := range test.states {
			b.must("sim.state", `{"link":"`+s+`"}`)
		}
		if isClear := b.d.Snapshot().View.Tree == nil; isClear != test.isClear {
			t.Errorf("link states %v: panel clear %v, want the opposite", test.states, isClear)
		}
	}
}

func TestShow_ResultNamesWhatDoesNotFit(t *testing.T) {
	b := newBench(t, "even_g1")
	if f := b.result(b.do("display.show", list)).Findings; len(f) != 1 || f[0].Kind != glasses.FindingUnreachable ||
		f[0].ID != "two" {
		t.Errorf("a list on glasses that cannot navigate: findings %+v, want one unreachable", f)
	}
	many := `{"tree":{"type":"list","children":[` + strings.Repeat(`{"type":"text","text":"x"},`, 99) +
		`{"type":"text","text":"x"}]}}`
	if r := b.result(b.do("display.show", many)); len(r.Findings) != glasses.MaxFindings ||
		r.MoreFindings+glasses.MaxFindings != 99+95 {
		t.Errorf("100 entries: %d findings and %d more, want MaxFindings", len(r.Findings), r.MoreFindings)
	}
	fits := newBench(t, "rayban_display")
	if r := fits.result(fits.do("display.show", list)); !r.OK || r.Findings != nil || r.MoreFindings != 0 {
		t.Errorf("a list that fits: %+v, want no findings", r)
	}
}

func TestOtherGlasses(t *testing.T) {
	b := newBench(t, "rayban_display")
	b.must("display.show", list)
	b.mute = true
	photo := b.do(glasses.TypeCameraPhoto, "")
	b.must("sim.device", `{"deviceModel":"rayban_display"}`)
	equal(t, "the same", b.types(), []string{})
	b.must("sim.device", `{"deviceModel":"even_g1"}`)
	if b.code(photo) != "platform_error" || b.d.Model().ID != "even_g1" || b.d.Snapshot().View.Tree != nil {
		t.Errorf("photo %s, model %s, view %+v; want platform_error and a clear even_g1",
			b.code(photo), b.d.Model().ID, b.d.Snapshot().View)
	}
	if got := b.types(); len(got) != 1 || !strings.HasPrefix(got[0], `device{"deviceModel":{"id":"even_g1"`) {
		t.Errorf("events: %v", got)
	}
	if got := b.code(b.do("sim.advance", `{"toMs":5}`)); got != "unsupported" {
		t.Errorf("sim.advance in real time: %s, want unsupported", got)
	}
}

func TestSnapshot(t *testing.T) {
	b := newBench(t, "rayban_display")
	b.must("display.show", list)
	b.must("sim.input", `{"kind":"navigate","direction":"down"}`)
	b.must("motion.start", "")
	b.must("phrases.announce", `{"phrases":["go"]}`)
	b.must("sim.state", `{"battery":{"level":5},"permissions":{"camera":"denied"}}`)
	raw, _ := json.Marshal(b.d.Snapshot())
	var s glasses.Snapshot
	_ = json.Unmarshal(raw, &s)
	again := device.New(b.d.Model(), device.Options{Snapshot: &s}).Snapshot()
	want := b.d.Snapshot()
	want.State.Running = []string{}
	if got, _ := json.Marshal(again); string(got) != string(must(json.Marshal(want))) {
		t.Errorf("%s\n%s", got, raw)
	}
	empty := device.New(b.d.Model(), device.Options{Snapshot: &glasses.Snapshot{}}).Snapshot().State
	if empty.Link != "connected" || empty.Permissions["camera"] != "granted" || empty.Faults == nil {
		t.Errorf("an empty snapshot: %+v, want the defaults", empty)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// The answer to sim.state fits in a frame, regardless of what an app has shown and announced.
func TestResultsFitAFrame(t *testing.T) {
	b := newBench(t, "rayban_display")
	big := func(n int) string {
		return `{"tree":{"type":"text","text":"` + strings.Repeat("<", n) + `"}}`
	}
	if got := b.code(b.do("display.show", big(10_000))); got != "bad_payload" {
		t.Errorf("a tree that grows beyond a frame: %s, want bad_payload", got)
	}
	b.must("display.show", big(9000))
	b.must("phrases.announce", `{"phrases":[`+strings.TrimSuffix(strings.Repeat(`"`+strings.Repeat("<", 100)+`",`,
		50), ",")+`]}`)
	for range 32 {
		b.must("sim.fault", `{"command":"transcription.start","code":"permission_denied","latencyMs":59999,"times":1000}`)
	}
	if got := b.code(b.do("sim.fault", `{"latencyMs":1}`)); got != "busy" {
		t.Errorf("the 33rd fault: %s, want busy", got)
	}
	b.must("sim.state", `{"disabled":["camera"]}`)
	for _, o := range b.out {
		if raw, _ := o.Frame.Encode(); len(raw) > glasses.MaxFrame {
			t.Errorf("%s has %d bytes, want at most MaxFrame", o.Frame.Type, len(raw))
		}
	}
	if r := b.result(fmt.Sprintf("a-%d", b.n)); r.View == nil || r.View.Tree == nil || r.State == nil {
		t.Error("the answer does not contain the view")
	}
}

// The result of a show fits in one frame, even if long texts do not fit on the panel.
func TestShow_FindingsFitIntoAFrame(t *testing.T) {
	list := glasses.Node{Type: glasses.NodeList}
	for i := range 12 {
		list.Children = append(list.Children, glasses.Node{
			Type: glasses.NodeText, ID: fmt.Sprintf("t%d", i), Text: strings.Repeat("unbroken", 450),
		})
	}
	for _, m := range glasses.Models() {
		if m.Panel == nil {
			continue
		}
		findings := render.Fit(m, render.Clamp(m, glasses.View{Tree: &list}))
		data, err := json.Marshal(glasses.Result{OK: true, Findings: findings[:min(len(findings), glasses.MaxFindings)]})
		if err != nil || len(data) > 16<<10 {
			t.Errorf("%s: the result has %d bytes, error %v", m.ID, len(data), err)
		}
	}
}
