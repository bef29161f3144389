//go:build unix

package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
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
	"github.com/service-dev/service/glasses"
	file "github.com/service-dev/service/glasses/scenario"
	"github.com/service-dev/service/internal/clientio/local"
	"github.com/service-dev/service/internal/problem"
)

// noTelemetry discards all events.
type noTelemetry struct{}

func (noTelemetry) Record(context.Context, string, map[string]any) {}

// agent calls the tools of one catalogue with local sessions.
type agent struct {
	t         *testing.T
	catalogue *tools.Catalogue
}

func newAgent(t *testing.T, l *locals) *agent {
	return &agent{t, tools.New(tools.Options{Sessions: l.Manager, Scenarios: scenario.New(l), Telemetry: noTelemetry{},
		Now: time.Now})}
}

// call returns the encoded answer of a tool.
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

// menu is an app that shows the next list after each tap. If other is set, one label is "Kalender" instead,
// and there is one more list.
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

// recordMenu records the menu app with ten taps and expectations in between, and returns the recording's folder.
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

// A changed label, an additional frame and a wrong picture are all reported in one answer of limited size.
func TestReplay_AnswerNamesEveryDivergence(t *testing.T) {
	t.Parallel()
	l := startLocals(t, t.TempDir())
	a := newAgent(t, l)
	dir := recordMenu(t, l, a)
	change(t, dir, func(s *file.Scenario) { s.Recorded.Pictures[7].SHA256 = s.Recorded.Pictures[0].SHA256 })
	begin, on := menu(true)
	o := startApp(t, l, backend.ClockVirtual, begin, on)
	out := filepath.Join(t.TempDir(), "out")
	answer, raw := a.replay(o.SessionID, dir, map[string]any{"artifactsDir": out})
	if len(raw) >= 4096 {
		t.Errorf("the answer has %d bytes, want fewer than 4096", len(raw))
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
			t.Errorf("unexpected difference %d, in step %s: %+v", i, s.Steps[d.Step-1].Act(), d)
		}
		for _, path := range []string{d.WantFile, d.GotFile, d.DiffFile} {
			if path == "" {
				continue
			}
			want.files--
			written[path] = true
			if !strings.HasPrefix(filepath.Base(path), fmt.Sprintf("step-%d-", d.Step)) {
				t.Errorf("the name of %s does not contain step %d", path, d.Step)
			}
		}
		if want.files != 0 {
			t.Errorf("%d picture files are missing: %+v", want.files, d)
		}
	}
	if !strings.HasPrefix(answer.Summary, fmt.Sprintf("First divergence in step %d at 2000 ms: ", answer.Diffs[0].Step)) ||
		!strings.Contains(answer.Summary, "Kalender") {
		t.Errorf("summary %q", answer.Summary)
	}
	entries, err := os.ReadDir(out)
	if err != nil || len(entries) != len(answer.Pictures) || len(entries) != 7 {
		t.Errorf("%d files on disk, %d pictures named, error %v; want 7 of each", len(entries), len(answer.Pictures), err)
	}
	for _, p := range answer.Pictures {
		if !written[p.File] {
			t.Errorf("picture %+v belongs to no reported difference", p)
		}
	}
}

// Accepting an intended change updates frames and pictures and keeps the agent's expectations.
func TestReplay_AcceptKeepsTheClaims(t *testing.T) {
	t.Parallel()
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
		t.Fatalf("the recording has %d expectations, want 10", claims)
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
		t.Errorf("%d steps (before: %d), %d pictures; want as many steps and 12 pictures",
			len(after.Steps), len(before.Steps), len(after.Recorded.Pictures))
	}
	if answer, raw := a.replay(start().SessionID, dir, map[string]any{}); answer.Verdict != scenario.Pass ||
		len(answer.Diffs) != 0 {
		t.Errorf("replay after accepting: %s; want it to pass", raw)
	}
	// Accepting does not change an expectation that the app fails to meet.
	change(t, dir, func(s *file.Scenario) {
		i := slices.IndexFunc(s.Steps, func(s file.Step) bool { return s.ExpectDisplay != nil })
		s.Steps[i].ExpectDisplay.Text = []string{"Never"}
	})
	if answer, raw := a.replay(start().SessionID, dir, map[string]any{"accept": true}); answer.Code !=
		problem.CodeNotAccepted || !strings.Contains(answer.Message, "Never") {
		t.Errorf("accepting despite a failed expectation: %s; want not_accepted", raw)
	}
	o := start()
	a.call("setDevice", o.SessionID, map[string]any{"deviceModel": "even_g1"})
	if answer, raw := a.replay(o.SessionID, dir, map[string]any{"accept": true}); answer.Code !=
		problem.CodeNotAccepted || !strings.Contains(answer.Message, "even_g1") {
		t.Errorf("accepting on another device model: %s; want not_accepted", raw)
	}
}
