//go:build unix

package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/scenario"
	"github.com/service-dev/service/proto/glasses"
)

// echo is an app that shows all it is told: states, inputs, transcripts, photos and how the head moves. It takes a
// photo on each second input and one every five seconds, and counts by itself. With batches it shows only once after
// all that happened at an instant, so that it tells one change of two states from two changes.
func echo(batches bool) (begin func(*testApp), on func(*testApp, glasses.Frame)) {
	var words []string
	sleeping, photos, count, inputs := "", map[string]bool{}, 0, 0
	motion, shown := "", ""
	show := func(a *testApp) {
		list := words[max(0, len(words)-4):]
		if now := strings.Join(list, " / ") + motion; now != shown {
			shown = now
			a.ask(glasses.TypeDisplayShow, text(now))
		}
	}
	sleep := func(a *testApp) { sleeping = a.ask(glasses.TypeClockSleep, glasses.Sleep{Ms: 1700}) }
	photo := func(a *testApp) { photos[a.ask(glasses.TypeCameraPhoto, glasses.Photo{Width: 128})] = true }
	begin = func(a *testApp) {
		if batches {
			a.batch = show
		}
		a.ask(glasses.TypeMotionStart, glasses.MotionStart{Hz: 4})
		a.ask(glasses.TypeTranscriptionStart, struct{}{})
		words = []string{"begin"}
		show(a)
		sleep(a)
	}
	on = func(a *testApp, f glasses.Frame) {
		switch {
		case f.Type == glasses.TypeResult && f.ID == sleeping:
			if res, err := glasses.ParseResult(f.Payload); err != nil || !res.OK {
				words = append(words, "no sleep")
				break
			}
			if count++; count%3 == 0 {
				photo(a)
			}
			words = append(words, fmt.Sprint("count ", count))
			sleep(a)
		case f.Type == glasses.TypeResult && photos[f.ID]:
			res, err := glasses.ParseResult(f.Payload)
			switch {
			case err != nil:
				panic(err)
			case res.Media != nil:
				words = append(words, "photo "+res.Media.SHA256[:8])
			default:
				words = append(words, "no photo "+res.Error.Code)
			}
		case f.Type == glasses.TypeMotion:
			motion = " at " + string(f.Payload)
		case f.Type == glasses.TypeInput:
			if inputs++; inputs%2 == 0 {
				photo(a)
			}
			words = append(words, string(f.Payload))
		case !glasses.FromGlasses(f.Type):
			return
		default:
			words = append(words, f.Type+string(f.Payload))
		}
		if !batches {
			show(a)
		}
	}
	return begin, on
}

func onePicture(t *testing.T, c color.Color) []byte {
	t.Helper()
	img := image.NewNRGBA(image.Rect(0, 0, 64, 64))
	for i := range 64 * 64 {
		img.Set(i%64, i/64, c)
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// driver does random things to the glasses of a session.
type driver struct {
	t      *testing.T
	l      *locals
	id     string
	random *rand.Rand
	runner *scenario.Runner
	did    []string
}

func (d *driver) control(typ string, payload any, media []byte) {
	d.t.Helper()
	before, err := d.l.Get(d.t.Context(), backend.Target{}, d.id)
	if err != nil {
		d.t.Fatal(err)
	}
	res, err := d.l.Control(d.t.Context(), backend.Target{}, d.id, typ, payload, media)
	if err != nil {
		d.t.Fatal(err)
	}
	if res.Error == nil {
		d.runner.NoteInjection(d.t.Context(), backend.Target{}, d.id, typ, payload, before.LastSeq)
	}
	code := "ok"
	if res.Error != nil {
		code = res.Error.Code
	}
	raw, _ := json.Marshal(payload)
	d.did = append(d.did, fmt.Sprintf("%s %s: %s", typ, raw, code))
}

func (d *driver) patch() (p glasses.StatePatch) {
	oneOf := func(list ...string) *string { return &list[d.random.IntN(len(list))] }
	for range 1 + d.random.IntN(4) {
		switch d.random.IntN(7) {
		case 0:
			p.Battery = &glasses.Battery{Level: d.random.IntN(101), Charging: d.random.IntN(2) == 0}
		case 1:
			p.Worn = new(d.random.IntN(3) > 0)
		case 2:
			p.Hinge = oneOf(glasses.HingeOpen, glasses.HingeOpen, glasses.HingeFolded)
		case 3:
			p.Thermal = oneOf(glasses.ThermalNominal, glasses.ThermalWarm, glasses.ThermalCritical)
		case 4:
			p.Call = new(d.random.IntN(2) == 0)
		case 5:
			p.Permissions = map[string]string{}
			for _, part := range []string{glasses.PartCamera, glasses.PartMicrophone, glasses.PartSpeech} {
				p.Permissions[part] = *oneOf(glasses.PermissionGranted, glasses.PermissionDenied)
			}
		default:
			p.Route = oneOf(glasses.RouteGlasses, glasses.RoutePhone)
		}
	}
	return p
}

func (d *driver) act() {
	switch d.random.IntN(11) {
	case 0, 1:
		d.control(glasses.SimInput, glasses.Input{Kind: glasses.InputTap, X: d.random.IntN(600), Y: d.random.IntN(600)}, nil)
	case 2:
		d.control(glasses.SimInput, glasses.Input{Target: "next"}, nil)
	case 3:
		d.control(glasses.SimTranscript, glasses.Transcript{Text: fmt.Sprint("say ", d.random.IntN(9)), Final: true}, nil)
	case 4, 5:
		d.control(glasses.SimState, d.patch(), nil)
	case 6:
		d.control(glasses.SimMotion, glasses.Motion{AX: d.random.IntN(100)}, nil)
	case 7:
		d.control(glasses.SimFault, glasses.Fault{Command: glasses.TypeDisplayShow, Code: glasses.CodeBusy, Times: 1}, nil)
	case 8:
		d.control(glasses.SimCamera, struct{}{}, onePicture(d.t, color.NRGBA{uint8(d.random.IntN(256)), 9, 9, 255}))
	case 9:
		d.control(glasses.SimDevice, glasses.DeviceChoice{DeviceModel: []string{"even_g1", "rayban_display"}[d.random.IntN(2)]}, nil)
	default:
		d.pass(d.random.Int64N(3000))
	}
}

func (d *driver) pass(ms int64) {
	if _, _, err := d.l.Advance(d.t.Context(), d.id, ms); err != nil {
		d.t.Fatal(err)
	}
	d.did = append(d.did, fmt.Sprint("advance ", ms))
}

// A recording passes on the same app whatever was done to the glasses, and however many things at one instant.
func TestRecord_ReplaysWhateverWasDone(t *testing.T) {
	l := startLocals(t, t.TempDir())
	for seed := range uint64(8) {
		runner := scenario.New(l, l)
		batches := seed%2 == 0
		begin, on := echo(batches)
		o := startApp(t, l, backend.ClockVirtual, begin, on)
		d := &driver{t: t, l: l, id: o.SessionID, random: rand.New(rand.NewPCG(seed, 7)), runner: runner}
		for range 30 {
			d.act()
		}
		path := filepath.Join(t.TempDir(), "recording", "scenario.json")
		rec, err := runner.Record(t.Context(),
			scenario.RecordRequest{Files: ours, SessionID: o.SessionID, Path: path})
		if err != nil {
			t.Fatal(err)
		}
		begin, on = echo(batches)
		again := startApp(t, l, backend.ClockVirtual, begin, on)
		if r := runFile(t, l, again.SessionID, path, ""); r.Verdict != scenario.Pass || len(r.Diffs) > 0 {
			s, _ := scenario.Load(t.Context(), ours, path)
			steps, _ := json.Marshal(s.Steps)
			diffs, _ := json.MarshalIndent(r.Diffs[:min(len(r.Diffs), 2)], "", " ")
			t.Fatalf("seed %d: %d differences, %s\n%+v\n%s\n%s\n%s", seed, len(r.Diffs), diffs, rec.Notes,
				strings.Join(d.did, "\n"), steps, failed(r))
		}
		for _, id := range []string{o.SessionID, again.SessionID} {
			if _, err := l.Close(t.Context(), backend.Target{}, id); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// What runSteps did and found is part of a recording like what single tools did.
func TestRecord_KeepsWhatRunStepsClaimed(t *testing.T) {
	l := startLocals(t, t.TempDir())
	a := newAgent(t, l)
	begin, on := echo(true)
	o := startApp(t, l, backend.ClockVirtual, begin, on)
	steps := json.RawMessage(`[
		{"motion":{"ax":7}}, {"advance":500},
		{"state":{"battery":{"level":9,"charging":false},"worn":true,"thermal":"warm","call":true}},
		{"expect":{"type":"battery","payload":{"level":9}}},
		{"expect":{"kind":"request","type":"display.show"}},
		{"expect":{"type":"display.clear","absent":true,"withinMs":300}},
		{"input":{"target":"next"}},
		{"expectDisplay":{"text":["Next"],"focus":"next","withinMs":500}},
		{"expectNothingClipped":{"models":["rayban_display"],"withinMs":0}}]`)
	raw := a.call("runSteps", o.SessionID, map[string]any{"steps": steps})
	var ran struct {
		Verdict string
		Steps   []scenario.StepReport
	}
	if err := json.Unmarshal(raw, &ran); err != nil || len(ran.Steps) != 9 {
		t.Fatalf("%s, %v", raw, err)
	}
	claims := 0
	for _, s := range ran.Steps {
		if strings.HasPrefix(s.Step, "expect") && s.Verdict == scenario.Pass {
			claims++
		}
	}
	if claims < 4 {
		t.Fatalf("too few steps held: %s", raw)
	}
	dir := filepath.Join(t.TempDir(), "recording")
	a.record(o.SessionID, dir)
	acts := map[string]int{}
	for _, s := range loadRecording(t, dir).Steps {
		acts[s.Act()]++
	}
	kept := acts["expect"] + acts["expectDisplay"] + acts["expectNothingClipped"]
	if acts["motion"] != 1 || acts["state"] != 1 || acts["input"] != 1 || kept != claims {
		t.Errorf("%d claims of %d, steps %v", kept, claims, acts)
	}
	begin, on = echo(true)
	again := startApp(t, l, backend.ClockVirtual, begin, on)
	if answer, raw := a.replay(again.SessionID, dir, map[string]any{}); answer.Verdict != scenario.Pass {
		t.Errorf("%s", raw)
	}
}

func failed(r scenario.Report) (list []string) {
	for _, s := range r.Steps {
		if s.Verdict != scenario.Pass {
			list = append(list, fmt.Sprintf("%d %s: %s", s.Index, s.Step, s.Message))
		}
	}
	return list
}
