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
	"testing"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/scenario"
	"github.com/service-dev/service/glasses"
)

// listener is an app that shows each input, sensor and state frame it receives, and takes a photo on each input.
func listener() (begin func(*testApp), on func(*testApp, glasses.Frame)) {
	count := 0
	taken := map[string]bool{}
	show := func(a *testApp, what string) {
		count++
		a.ask(glasses.TypeDisplayShow, text(fmt.Sprintf("%d %s", count, what)))
	}
	begin = func(a *testApp) {
		show(a, "hello")
		a.ask(glasses.TypeMotionStart, glasses.MotionStart{Hz: 1})
	}
	on = func(a *testApp, f glasses.Frame) {
		switch f.Type {
		case glasses.TypeInput:
			show(a, "input")
			taken[a.ask(glasses.TypeCameraPhoto, glasses.Photo{Width: 160})] = true
		case glasses.TypeMotion:
			show(a, "motion "+string(f.Payload))
		case glasses.TypeBattery, glasses.TypeWear, glasses.TypeThermal, glasses.TypeRoute, glasses.TypePermission:
			show(a, f.Type+" "+string(f.Payload))
		case glasses.TypeResult:
			if taken[f.ID] {
				res, _ := glasses.ParseResult(f.Payload)
				show(a, fmt.Sprintf("photo %v", res.Media != nil))
			}
		}
	}
	return begin, on
}

// act sends a random input to the glasses, or adds an expectation that is met.
func (a *agent) act(id string, r *rand.Rand, picture string) {
	switch r.IntN(8) {
	case 0:
		a.call("advanceTime", id, map[string]any{"ms": 1 + r.IntN(3000)})
	case 1:
		a.call("injectInput", id, map[string]any{"kind": "tap"})
	case 2, 3:
		state := map[string]any{"battery": map[string]any{"level": r.IntN(101)}, "worn": r.IntN(3) > 0}
		if r.IntN(2) == 0 {
			state["thermal"] = []string{"nominal", "warm"}[r.IntN(2)]
			state["permissions"] = map[string]any{"speech": []string{"granted", "denied"}[r.IntN(2)]}
		}
		a.call("injectSensor", id, map[string]any{"state": state})
	case 4:
		a.call("injectSensor", id, map[string]any{"motion": map[string]any{"ax": r.IntN(1000), "az": 1000}})
	case 5:
		a.call("injectSensor", id, map[string]any{"cameraFile": picture})
		a.call("injectInput", id, map[string]any{"kind": "tap"})
	case 6:
		a.call("waitForEvent", id, map[string]any{"type": "display.show", "kind": "request", "since": 0, "timeoutSeconds": 1})
	default:
		var shown struct{ Text []string }
		_ = json.Unmarshal(a.call("getDisplayState", id, map[string]any{}), &shown)
		if len(shown.Text) > 0 {
			a.call("expectDisplay", id, map[string]any{"text": shown.Text[:1], "withinMs": 0})
		}
	}
}

func TestRecord_AlwaysReplaysOnTheSameApp(t *testing.T) {
	t.Parallel()
	l := startLocals(t, t.TempDir())
	a := newAgent(t, l)
	img := image.NewNRGBA(image.Rect(0, 0, 64, 48))
	img.Set(3, 4, color.White)
	var data bytes.Buffer
	if err := png.Encode(&data, img); err != nil {
		t.Fatal(err)
	}
	picture := write(t, filepath.Join(t.TempDir(), "scene.png"), data.String())
	acts := map[string]int{}
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 7))
		begin, on := listener()
		o := startApp(t, l, backend.ClockVirtual, begin, on)
		for range 15 {
			a.act(o.SessionID, r, picture)
		}
		dir := filepath.Join(t.TempDir(), "recording")
		a.record(o.SessionID, dir)
		for _, s := range loadRecording(t, dir).Steps {
			acts[s.Act()]++
		}
		begin, on = listener()
		again := startApp(t, l, backend.ClockVirtual, begin, on)
		if answer, raw := a.replay(again.SessionID, dir, map[string]any{}); answer.Verdict != scenario.Pass {
			steps, _ := json.Marshal(loadRecording(t, dir).Steps)
			t.Fatalf("seed %d: replay did not pass: %s\n%s", seed, raw, steps)
		}
		for _, id := range []string{o.SessionID, again.SessionID} {
			a.call("closeSession", id, map[string]any{})
		}
	}
	for _, act := range []string{"motion", "camera", "state", "input", "advance", "expect", "expectDisplay"} {
		if acts[act] == 0 {
			t.Errorf("no recording has a %s step: %v", act, acts)
		}
	}
}
