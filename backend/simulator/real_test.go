package main

import (
	"encoding/json"
	"image"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/driver"
	"github.com/service-dev/service/glasses/render"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/test/glassestest/peripheral"
	"github.com/service-dev/service/test/glassestest/peripheral/g1"
)

// realTest is a page that transfers bytes between the program and an emulated Even G1, in virtual time.
type realTest struct {
	t      *testing.T
	p      player
	pair   *g1.Pair
	arms   map[string]peripheral.Peripheral
	now    int64
	frames []glasses.Frame
}

func newRealTest(t *testing.T, display string, state glasses.State) *realTest {
	t.Helper()
	known, err := json.Marshal(state.ForApp(state.Link, glasses.ClockReal))
	if err != nil {
		t.Fatal(err)
	}
	pair := g1.New(g1.Options{Channel: 27})
	r := &realTest{t: t, pair: pair, arms: map[string]peripheral.Peripheral{"left": pair.Left(), "right": pair.Right()},
		now: 1000}
	if err := r.p.startReal(r.now, "even_g1", display, string(known), "page-1"); err != nil {
		t.Fatal(err)
	}
	return r
}

// run advances the virtual time.
func (r *realTest) run(ms int64) {
	r.t.Helper()
	for end := r.now + ms; r.now <= end; r.now++ {
		for key, arm := range r.arms {
			arm.Tick(r.now)
			for _, o := range arm.Take() {
				e := driver.Event{Kind: driver.Notified, Link: key, Data: o.Value}
				if o.Dropped {
					e = driver.Event{Kind: driver.LinkDown, Link: key, Problem: problem.CodeLost}
				}
				r.p.event(r.now, e)
			}
		}
		r.p.tick(r.now)
		r.drain()
	}
}

func (r *realTest) drain() {
	r.t.Helper()
	for outs := r.p.take(); len(outs) > 0; outs = r.p.take() {
		for _, o := range outs {
			switch {
			case o.Frame != nil:
				r.frames = append(r.frames, *o.Frame)
			case o.Connect != nil:
				arm := r.arms[o.Connect.Key]
				if err := arm.Connect(r.now, 247); err != nil {
					r.t.Fatal(err)
				}
				if err := arm.Subscribe(r.now, o.Connect.Notify, true); err != nil {
					r.t.Fatal(err)
				}
				r.p.event(r.now, driver.Event{Kind: driver.LinkUp, Link: o.Connect.Key})
			case o.Write != nil:
				if err := r.arms[o.Write.Link].Write(r.now, g1.WriteUUID, o.Write.Data, o.Write.WithResponse); err != nil {
					r.t.Fatal(err)
				}
				r.p.event(r.now, driver.Event{Kind: driver.Written, Link: o.Write.Link})
			case o.Drop != "":
				r.arms[o.Drop].Disconnect(r.now)
				r.p.event(r.now, driver.Event{Kind: driver.LinkDown, Link: o.Drop})
			}
		}
	}
}

// events returns the events of the link and of the state, in order.
func (r *realTest) events() (list []string) {
	for _, f := range r.frames {
		if f.Type != glasses.TypeResult && f.Type != glasses.TypeBattery {
			list = append(list, f.Type+" "+string(f.Payload))
		}
	}
	return list
}

func (r *realTest) send(id, typ, payload string) {
	r.t.Helper()
	f := `{"v":1,"type":"` + typ + `","id":"` + id + `","at":1,"payload":` + payload + `}`
	if err := r.p.handle(r.now, []byte(f), false); err != nil {
		r.t.Fatal(err)
	}
	r.drain()
}

func (r *realTest) result(id string) (res glasses.Result) {
	r.t.Helper()
	i := slices.IndexFunc(r.frames, func(f glasses.Frame) bool { return f.Type == glasses.TypeResult && f.ID == id })
	if i < 0 {
		r.t.Fatalf("%s has no result", id)
	}
	if err := json.Unmarshal(r.frames[i].Payload, &res); err != nil {
		r.t.Fatal(err)
	}
	return res
}

// The page hosts real glasses: an app's picture appears on both arms as the simulator draws it, a tap reaches the app,
// and the panel is dark when the page disconnects.
func TestReal_ShowsThePictureOfTheSimulator(t *testing.T) {
	r := newRealTest(t, "", glasses.FreshState())
	r.run(3000)
	if diff := cmp.Diff([]linkState{{"left", "up", ""}, {"right", "up", ""}}, r.p.links()); diff != "" {
		t.Fatal(diff)
	}
	r.send("show", glasses.TypeDisplayShow, twoButtons)
	r.run(3000)
	if res := r.result("show"); !res.OK {
		t.Fatalf("display.show: %+v", res.Error)
	}
	want := render.Draw(r.p.dev.Model(), r.p.seen())
	for _, side := range []g1.Side{g1.Left, g1.Right} {
		if got, ok := r.pair.Picture(side); !ok || !sameLight(got, want) {
			t.Errorf("the %v arm shows another picture", side)
		}
	}
	r.pair.Tap(r.now, g1.Right)
	r.run(100)
	if got := r.events(); !strings.Contains(got[len(got)-1], `"kind":"tap"`) {
		t.Errorf("the last event is %s, want a tap", got[len(got)-1])
	}
	r.p.leave(r.now)
	r.run(1000)
	if _, shown := r.pair.Picture(g1.Left); shown || !r.p.left() {
		t.Errorf("after leaving the panel shows a picture (%t) or the glasses are not left", shown)
	}
	if v := r.pair.Violations(); len(v) > 0 {
		t.Errorf("the program broke the protocol: %v", v)
	}
}

func sameLight(got *image.Paletted, want *image.NRGBA) bool {
	for y := range want.Rect.Dy() {
		for x := range want.Rect.Dx() {
			r, g, b, _ := want.At(x, y).RGBA()
			if (got.ColorIndexAt(x, y) != 0) != (r|g|b != 0) {
				return false
			}
		}
	}
	return got.Rect.Size() == want.Rect.Size()
}

// Real glasses do not stay folded, hot or refused because the simulated ones were, and the app is notified.
func TestReal_EndsWhatOnlySimulatedGlassesHave(t *testing.T) {
	state := glasses.FreshState()
	state.Hinge, state.Worn, state.Thermal, state.Call = glasses.HingeFolded, false, glasses.ThermalCritical, true
	state.Permissions = map[string]string{"camera": "granted", "microphone": "denied", "speech": "granted"}
	r := newRealTest(t, twoButtons, state)
	r.run(3000)
	want := []string{`wear {"worn":true}`, `hinge {"state":"open"}`, `thermal {"state":"nominal"}`,
		`link {"state":"lost"}`, `call {"active":false}`,
		`permission {"part":"microphone","state":"granted","by":"permission"}`, `link {"state":"connected"}`}
	if diff := cmp.Diff(want, r.events()); diff != "" {
		t.Error(diff)
	}
	if r.frames[0].At != 1000 || r.frames[0].ID != "page-1-1" {
		t.Errorf("the first event has the time %d and the id %s", r.frames[0].At, r.frames[0].ID)
	}
	if s := r.p.dev.Snapshot(); s.View.Tree != nil {
		t.Error("the panel is not clear once the glasses are connected")
	}
}

// Real glasses refuse actions that only simulated ones support, with the same message as a session without a page, for
// every caller.
func TestReal_RefusesWhatOnlySimulatedGlassesCanDo(t *testing.T) {
	r := newRealTest(t, "", glasses.FreshState())
	r.run(3000)
	for typ, payload := range map[string]string{
		glasses.SimFault: `{"code":"busy"}`, glasses.SimState: `{"hinge":"folded"}`,
		glasses.SimDevice: `{"deviceModel":"rayban_display"}`, glasses.SimCamera: `{}`,
	} {
		want := "real glasses cannot be told to " + typ + "; use simulated glasses for that"
		r.send(typ, typ, payload)
		if res := r.result(typ); res.Error == nil || res.Error.Message != want {
			t.Errorf("the frame %s: got %+v, want %q", typ, res.Error, want)
		}
		if res := r.p.dev.Control(r.now, typ, []byte(payload), nil); res.Error == nil || res.Error.Message != want {
			t.Errorf("the page's %s: got %+v, want %q", typ, res.Error, want)
		}
	}
	if res := r.p.dev.Control(r.now, glasses.SimInput, []byte(`{"kind":"tap"}`), nil); !res.OK {
		t.Errorf("a tap at the page: %+v", res.Error)
	}
	if err := r.p.startReal(0, "rayban_display", "", "", "p"); err == nil {
		t.Error("a model without a driver was started")
	}
}

// An advertised name identifies the pair and the link of a peripheral.
func TestIdentify(t *testing.T) {
	for name, want := range map[string]peripheralName{
		"Even G1_27_R_119A6C": {"Even G1_27", "right"}, "Even G1_27_L_119A6C": {"Even G1_27", "left"},
		"Frame 4F": {}, "": {},
	} {
		if got := identify("even_g1", name); got != want {
			t.Errorf("%q: got %+v, want %+v", name, got, want)
		}
	}
	if got := identify("rayban_display", "Even G1_27_R_119A6C"); got != (peripheralName{}) {
		t.Errorf("a model without a driver: got %+v", got)
	}
	models := []string{}
	for _, k := range realKinds() {
		models = append(models, k.DeviceModel)
		if len(k.Links) == 0 || k.Links[0].NamePrefix == "" || len(k.Steps) == 0 {
			t.Errorf("%s: got the links %+v and steps %q, want a name prefix and steps", k.DeviceModel, k.Links, k.Steps)
		}
	}
	if diff := cmp.Diff([]string{"even_g1", "brilliant_frame", "brilliant_halo"}, models); diff != "" {
		t.Error(diff)
	}
}

// The page shows the message and the next step of each problem as sentences.
func TestProblemTexts_AreSentences(t *testing.T) {
	texts := problemTexts()
	const want = "Bluetooth is switched off. Switch it on; glasses that were connected then connect by themselves."
	if got := texts[problem.CodeRadioOff]; got != want || len(texts) != len(driver.Problems()) {
		t.Errorf("got %q and %d texts, want %q and one for each problem", got, len(texts), want)
	}
}
