//go:build unix

package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/scenario"
	"github.com/service-dev/service/daemon/internal/session"
	"github.com/service-dev/service/daemon/internal/tools"
	"github.com/service-dev/service/proto/clientio/local"
	"github.com/service-dev/service/proto/glasses"
	file "github.com/service-dev/service/proto/glasses/scenario"
)

// noTelemetry discards all events.
type noTelemetry struct{}

func (noTelemetry) Record(context.Context, string, map[string]any) {}

// agent calls the tools of one catalogue on local sessions.
type agent struct {
	t         *testing.T
	catalogue *tools.Catalogue
}

func newAgent(t *testing.T, l *locals) *agent {
	return &agent{t, tools.New(tools.Options{Sessions: l.Manager, Scenarios: scenario.New(l, l), Telemetry: noTelemetry{},
		Now: time.Now})}
}

// call returns the encoded answer.
func (a *agent) call(name, id string, args map[string]any) []byte {
	a.t.Helper()
	args["sessionId"] = id
	raw, err := json.Marshal(args)
	if err != nil {
		a.t.Fatal(err)
	}
	ctx := caller.With(a.t.Context(), caller.Caller{Cwd: a.t.TempDir(), Client: "agent", IO: local.New()})
	return a.catalogue.Call(ctx, name, raw, tools.IO{}).Structured
}

// replayed is the answer of replaySession.
type replayed struct {
	scenario.Report
	Summary, Code, Message string
}

func (a *agent) replay(id, dir string, args map[string]any) (answer replayed, raw []byte) {
	a.t.Helper()
	args["file"] = dir
	raw = a.call("replaySession", id, args)
	if err := json.Unmarshal(raw, &answer); err != nil {
		a.t.Fatalf("%v: %s", err, raw)
	}
	return answer, raw
}

func (a *agent) record(id, dir string) {
	a.t.Helper()
	if raw := a.call("recordSession", id, map[string]any{"dir": dir}); !bytes.Contains(raw, []byte(`"recorded"`)) {
		a.t.Fatalf("recording: %s", raw)
	}
}

// menu is an app that shows another list after each tap. If other is set, one label is "Kalender" and it shows one more
// list.
func menu(other bool) (begin func(*testApp), on func(*testApp, glasses.Frame)) {
	taps := 0
	list := func(a *testApp, texts ...string) {
		tree := glasses.Node{Type: glasses.NodeList}
		for _, text := range texts {
			tree.Children = append(tree.Children, glasses.Node{Type: glasses.NodeText, Text: text})
		}
		a.ask(glasses.TypeDisplayShow, glasses.Show{Tree: tree})
	}
	begin = func(a *testApp) { list(a, "Start", "Mail") }
	on = func(a *testApp, f glasses.Frame) {
		if f.Type != glasses.TypeInput {
			return
		}
		taps++
		calendar := "Calendar"
		if other && taps == 2 {
			calendar = "Kalender"
		}
		if other && taps == 4 {
			list(a, "Loading")
		}
		list(a, fmt.Sprint("Screen ", taps), calendar)
	}
	return begin, on
}

// recordMenu records the menu app with ten taps and expectations in between, and returns the folder.
func recordMenu(t *testing.T, l *locals, a *agent) string {
	t.Helper()
	begin, on := menu(false)
	o := startApp(t, l, backend.ClockVirtual, begin, on)
	for i := range 10 {
		a.call("advanceTime", o.SessionID, map[string]any{"ms": 1000})
		a.call("injectInput", o.SessionID, map[string]any{"kind": "tap"})
		text := fmt.Sprint("Screen ", i+1)
		if raw := a.call("expectDisplay", o.SessionID, map[string]any{"text": []string{text}}); !bytes.Contains(raw,
			[]byte(`"pass"`)) {
			t.Fatalf("tap %d: %s", i, raw)
		}
	}
	dir := filepath.Join(t.TempDir(), "menu")
	a.record(o.SessionID, dir)
	return dir
}

func change(t *testing.T, dir string, do func(*file.Scenario)) {
	t.Helper()
	s := loadRecording(t, dir)
	do(&s)
	data, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "scenario.json"), string(data))
}

func loadRecording(t *testing.T, dir string) file.Scenario {
	t.Helper()
	s, err := scenario.Load(t.Context(), ours, filepath.Join(dir, "scenario.json"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A changed label, an additional frame and a wrong picture are all named in one answer of bounded size.
func TestReplay_AnswerNamesEveryDivergence(t *testing.T) {
	l := startLocals(t, t.TempDir())
	a := newAgent(t, l)
	dir := recordMenu(t, l, a)
	change(t, dir, func(s *file.Scenario) { s.Recorded.Pictures[7].SHA256 = s.Recorded.Pictures[0].SHA256 })
	begin, on := menu(true)
	o := startApp(t, l, backend.ClockVirtual, begin, on)
	out := filepath.Join(t.TempDir(), "out")
	answer, raw := a.replay(o.SessionID, dir, map[string]any{"artifactsDir": out})
	if len(raw) >= 4096 {
		t.Errorf("the answer has %d bytes", len(raw))
	}
	s := loadRecording(t, dir)
	if answer.Verdict != scenario.Fail || len(answer.Diffs) != 3 || answer.MoreDiffs != nil {
		t.Fatalf("%s", raw)
	}
	written := map[string]bool{}
	for i, want := range []struct {
		kind, mention string
		atMs          int64
		files         int
	}{
		{scenario.DiffChanged, `list[1]: "Calendar" -> "Kalender"`, 2000, 3},
		{scenario.DiffExtra, "display.show is extra", 4000, 1},
		{scenario.DiffPicture, "drawn differently", 7000, 3},
	} {
		d := answer.Diffs[i]
		if d.Kind != want.kind || d.AtMs != want.atMs || !strings.Contains(d.Message, want.mention) ||
			s.Steps[d.Step-1].Input == nil {
			t.Errorf("difference %d in step %s: %+v", i, s.Steps[d.Step-1].Act(), d)
		}
		for _, path := range []string{d.WantFile, d.GotFile, d.DiffFile} {
			if path == "" {
				continue
			}
			want.files--
			written[path] = true
			if !strings.HasPrefix(filepath.Base(path), fmt.Sprintf("step-%d-", d.Step)) {
				t.Errorf("%s does not name step %d", path, d.Step)
			}
		}
		if want.files != 0 {
			t.Errorf("%d pictures are missing: %+v", want.files, d)
		}
	}
	if !strings.HasPrefix(answer.Summary, fmt.Sprintf("First divergence in step %d at 2000 ms: ", answer.Diffs[0].Step)) ||
		!strings.Contains(answer.Summary, "Kalender") {
		t.Errorf("summary %q", answer.Summary)
	}
	entries, err := os.ReadDir(out)
	if err != nil || len(entries) != len(answer.Pictures) || len(entries) != 7 {
		t.Errorf("%d files, %d pictures named, %v", len(entries), len(answer.Pictures), err)
	}
	for _, p := range answer.Pictures {
		if !written[p.File] {
			t.Errorf("%+v belongs to no difference", p)
		}
	}
}

// Accepting an intended change updates frames and pictures and keeps the agent's expectations.
func TestReplay_AcceptKeepsTheClaims(t *testing.T) {
	l := startLocals(t, t.TempDir())
	a := newAgent(t, l)
	dir := recordMenu(t, l, a)
	before := loadRecording(t, dir)
	claims := 0
	for _, s := range before.Steps {
		if s.ExpectDisplay != nil {
			claims++
		}
	}
	if claims != 10 {
		t.Fatalf("%d claims", claims)
	}
	start := func() session.Opened {
		begin, on := menu(true)
		return startApp(t, l, backend.ClockVirtual, begin, on)
	}
	answer, raw := a.replay(start().SessionID, dir, map[string]any{"accept": true})
	if answer.Verdict != scenario.Pass || !answer.Accepted || len(answer.Diffs) != 2 {
		t.Fatalf("accepting: %s", raw)
	}
	after := loadRecording(t, dir)
	if fmt.Sprint(len(after.Steps), len(after.Recorded.Pictures)) != fmt.Sprint(len(before.Steps), 12) ||
		after.DeviceModel != before.DeviceModel {
		t.Errorf("%d steps of %d, %d pictures", len(after.Steps), len(before.Steps), len(after.Recorded.Pictures))
	}
	if answer, raw := a.replay(start().SessionID, dir, map[string]any{}); answer.Verdict != scenario.Pass ||
		len(answer.Diffs) != 0 {
		t.Errorf("after accepting: %s", raw)
	}
	// Now the first app is the one that differs. An expectation that it does not meet is not changed by accepting.
	change(t, dir, func(s *file.Scenario) {
		i := slices.IndexFunc(s.Steps, func(s file.Step) bool { return s.ExpectDisplay != nil })
		s.Steps[i].ExpectDisplay.Text = []string{"Never"}
	})
	if answer, raw := a.replay(start().SessionID, dir, map[string]any{"accept": true}); answer.Code !=
		scenario.CodeNotAccepted || !strings.Contains(answer.Message, "Never") {
		t.Errorf("a claim that does not hold: %s", raw)
	}
	o := start()
	a.call("setDevice", o.SessionID, map[string]any{"deviceModel": "even_g1"})
	if answer, raw := a.replay(o.SessionID, dir, map[string]any{"accept": true}); answer.Code !=
		scenario.CodeNotAccepted || !strings.Contains(answer.Message, "even_g1") {
		t.Errorf("another model: %s", raw)
	}
}

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

// act does something random with the glasses, or adds an expectation that holds.
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
			t.Fatalf("seed %d: %s\n%s", seed, raw, steps)
		}
		for _, id := range []string{o.SessionID, again.SessionID} {
			a.call("closeSession", id, map[string]any{})
		}
	}
	for _, act := range []string{"motion", "camera", "state", "input", "advance", "expect", "expectDisplay"} {
		if acts[act] == 0 {
			t.Errorf("no recording has a step %s: %v", act, acts)
		}
	}
}
