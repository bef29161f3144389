package driver_test

import (
	"encoding/json"
	"fmt"
	"image"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/device"
	"github.com/service-dev/service/glasses/render"
	emulatedframe "github.com/service-dev/service/test/glassestest/peripheral/frame"
	emulated "github.com/service-dev/service/test/glassestest/peripheral/g1"
)

// parity compares a pair of emulated glasses with the simulator.
type parity struct {
	a       *air
	gesture func(r *rand.Rand) glasses.Input // makes the wearer perform a random input
	panel   func(want *image.NRGBA) error    // compares the panel with a picture; nil is a dark panel
	command func(r *rand.Rand, n int) (string, any)
	pause   int64 // ms after each step, in which the panel is updated
}

// like runs random commands and gestures on the emulated glasses and on the simulator. Both must send the same
// results and events in the same order, and after each step the panel must show the simulator's pixels. Only ids and
// times may differ, and the events that real glasses send by themselves: link, battery.
func (p parity) like(t *testing.T, r *rand.Rand, steps int) {
	t.Helper()
	a := p.a
	a.waitConnected()
	sim := device.New(a.glasses.Model(), device.Options{})
	var simulated []glasses.Frame
	begin := len(a.frames)
	for n := range steps {
		if r.IntN(3) == 0 {
			payload, _ := json.Marshal(p.gesture(r))
			a.settle()
			sim.Control(a.now, glasses.SimInput, payload, nil)
		} else {
			typ, payload := p.command(r, n)
			id := a.send(typ, payload)
			f, err := glasses.New(typ, id, a.now, payload)
			if err != nil {
				t.Fatal(err)
			}
			sim.Handle(a.now, f, nil)
			a.wait(id)
		}
		a.run(a.now + p.pause)
		sim.Tick(a.now)
		for _, o := range sim.Take() {
			if o.Ask == nil {
				simulated = append(simulated, o.Frame)
			}
		}
		view := sim.Snapshot().View
		var want *image.NRGBA
		if view.Tree != nil {
			want = render.Draw(sim.Model(), view)
		}
		if err := p.panel(want); err != nil {
			t.Fatalf("step %d: %v", n, err)
		}
	}
	got, want := withoutIDs(a.frames[begin:]), withoutIDs(simulated)
	for n := range max(len(got), len(want)) {
		if n >= len(got) || n >= len(want) || got[n] != want[n] {
			t.Fatalf("from entry %d the glasses answered\n%s\nand the simulator\n%s", n,
				strings.Join(got[min(n, len(got)):], "\n"), strings.Join(want[min(n, len(want)):], "\n"))
		}
	}
}

func TestG1_BehavesLikeTheSimulator(t *testing.T) {
	for seed := range uint64(repetitions(12, 30)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			a, pair := g1Air(t, emulated.Options{AnswerTime: 3})
			gesture := func(r *rand.Rand) glasses.Input {
				side := emulated.Side(r.IntN(2))
				in := glasses.Input{Kind: glasses.InputTap, Side: side.String()}
				if r.IntN(2) == 0 {
					in.Kind = glasses.InputDoubleTap
					pair.DoubleTap(a.now, side)
				} else {
					pair.Tap(a.now, side)
				}
				return in
			}
			panel := func(want *image.NRGBA) error { return sameOnBothArms(pair, want) }
			parity{a, gesture, panel, command, 5000}.like(t, rand.New(rand.NewPCG(seed, 7)), 25)
		})
	}
}

func TestFrame_BehavesLikeTheSimulator(t *testing.T) {
	bothModels(t, func(t *testing.T, model string) {
		for seed := range uint64(repetitions(3, 6)) {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				a, d := frameAir(t, model, emulatedframe.Options{})
				kinds := []string{"single"}
				if model == modelHalo {
					kinds = []string{"single", "double", "triple"}
				}
				gesture := func(r *rand.Rand) glasses.Input {
					kind := kinds[r.IntN(len(kinds))]
					d.Tap(a.now, kind)
					a.run(a.now + 60)
					return glasses.Input{Kind: map[string]string{"single": glasses.InputTap,
						"double": glasses.InputDoubleTap, "triple": glasses.InputHold}[kind]}
				}
				panel := func(want *image.NRGBA) error { return sameColours(d, want) }
				parity{a, gesture, panel, colourful, 2500}.like(t, rand.New(rand.NewPCG(seed, 8)), 15)
			})
		}
	})
}

// colourful is like command, for glasses with colours and a camera.
func colourful(r *rand.Rand, n int) (typ string, payload any) {
	typ, payload = command(r, n)
	switch {
	case typ == glasses.TypeCameraPhoto, typ == glasses.TypeMotionStart, typ == glasses.TypeSpeechSay:
		return glasses.TypeDisplayClear, struct{}{}
	case typ == glasses.TypeDisplayShow && r.IntN(2) == 0:
		colour := fmt.Sprintf("#%06x", r.IntN(1<<24))
		return typ, glasses.Show{Tree: glasses.Node{Type: glasses.NodeColumn, Children: []glasses.Node{
			{Type: glasses.NodeText, Text: fmt.Sprint("picture ", n), Colour: colour},
			{Type: glasses.NodeProgress, Value: r.IntN(100), Colour: "#e06f8b"},
			{Type: glasses.NodeButton, ID: "ok", Text: "OK"},
		}}}
	}
	return typ, payload
}

// command returns a random command, valid or not.
func command(r *rand.Rand, n int) (typ string, payload any) {
	switch r.IntN(10) {
	case 0:
		return glasses.TypeDisplayClear, struct{}{}
	case 1:
		return glasses.TypeCameraPhoto, struct{}{}
	case 2:
		return glasses.TypeSpeechSay, glasses.Say{Text: "no speaker"}
	case 3:
		return glasses.TypeClockSleep, glasses.Sleep{Ms: int64(r.IntN(2000))}
	case 4:
		return glasses.TypePhrasesAnnounce, glasses.Announce{Phrases: []string{fmt.Sprint("phrase ", n)}}
	case 5:
		return glasses.TypeMotionStart, glasses.MotionStart{Hz: 10}
	case 6:
		return glasses.TypeDisplayShow, json.RawMessage(`{"tree":{"type":"nonsense"}}`)
	}
	return glasses.TypeDisplayShow, tree(strings.Repeat(fmt.Sprint("picture ", n, " "), 1+r.IntN(8)))
}

// sameOnBothArms compares the pictures on both arms with a picture of the simulator.
func sameOnBothArms(pair *emulated.Pair, want *image.NRGBA) error {
	for _, side := range []emulated.Side{emulated.Left, emulated.Right} {
		got, ok := pair.Picture(side)
		if ok != (want != nil) {
			return fmt.Errorf("the %v arm shows a picture: %v, the simulator: %v", side, ok, want != nil)
		}
		if !ok {
			continue
		}
		if err := samePixels(got, want); err != nil {
			return fmt.Errorf("the %v arm: %w", side, err)
		}
	}
	return nil
}

// withoutIDs returns frames without the parts that may differ: event ids, times, and events that real glasses send by
// themselves.
func withoutIDs(frames []glasses.Frame) []string {
	var list []string
	for _, f := range frames {
		switch f.Type {
		case glasses.TypeLink, glasses.TypeBattery:
		case glasses.TypeResult:
			list = append(list, fmt.Sprintf("%s %s %s", f.Type, f.ID, f.Payload))
		default:
			list = append(list, fmt.Sprintf("%s %s", f.Type, f.Payload))
		}
	}
	return list
}
