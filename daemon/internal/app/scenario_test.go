//go:build unix

package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/clientio"
	"github.com/service-dev/service/daemon/internal/scenario"
	"github.com/service-dev/service/daemon/internal/session"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/internal/clientio/local"
	"github.com/service-dev/service/internal/problem"
)

// ours opens files with the permissions of this process.
var ours = clientio.FilesOf(caller.Caller{IO: local.New()})

// startApp opens a session and attaches an app to it.
func startApp(t *testing.T, l *locals, clock string, begin func(*testApp),
	on func(*testApp, glasses.Frame)) session.Opened {
	t.Helper()
	o, err := l.StartLocal(t.Context(), caller.Caller{},
		session.LocalRequest{Project: "com.example.app", Clock: clock, Fresh: true})
	if err != nil {
		t.Fatal(err)
	}
	attach(t, o, true, begin, on)
	return o
}

func runFile(t *testing.T, l *locals, id, path, artifacts string) scenario.Report {
	t.Helper()
	report, err := scenario.New(l).Run(t.Context(),
		scenario.Request{Files: ours, SessionID: id, Path: path, Artifacts: artifacts})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// A recording replays successfully against the same app. Against an app that behaves differently, the report shows the
// differences.
func TestRecordAndReplay(t *testing.T) {
	t.Parallel()
	l := startLocals(t, t.TempDir())
	dir := t.TempDir()
	begin, on := counter()
	o := startApp(t, l, backend.ClockVirtual, begin, on)
	played := write(t, filepath.Join(dir, "played.json"), `{"scenario":1,"name":"played","steps":[
		{"advance":4500},{"input":{"kind":"tap"}},{"state":{"thermal":"warm"}},{"advance":1000},{"device":"even_g1"},{"input":{"kind":"tap"}},{"advance":2000}]}`)
	if r := runFile(t, l, o.SessionID, played, ""); r.Verdict != scenario.Pass {
		t.Fatalf("%+v", r)
	}
	path := filepath.Join(dir, "recording", "counter.json")
	rec, err := scenario.New(l).Record(t.Context(),
		scenario.RecordRequest{Files: ours, SessionID: o.SessionID, Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if rec.Name != "counter" || rec.Requests < 8 || rec.Pictures < 5 || rec.DurationMs != 7500 || len(rec.Notes) != 0 {
		t.Errorf("recorded %+v", rec)
	}
	begin, on = counter()
	o = startApp(t, l, backend.ClockVirtual, begin, on)
	if r := runFile(t, l, o.SessionID, path, ""); r.Verdict != scenario.Pass || len(r.Diffs) != 0 || r.DurationMs != 7500 {
		t.Errorf("replay against the same app: %+v; want a pass after 7500 ms", r)
	}
	// This app counts from 100 after the first tap.
	count := 0
	o = startApp(t, l, backend.ClockVirtual, begin, func(a *testApp, f glasses.Frame) {
		if f.Type == glasses.TypeInput {
			count += 100
			a.ask(glasses.TypeDisplayShow, text(fmt.Sprintf("count %d", count)))
		}
	})
	artifacts := filepath.Join(dir, "out")
	r := runFile(t, l, o.SessionID, path, artifacts)
	if r.Verdict != scenario.Fail || len(r.Diffs) == 0 {
		t.Fatalf("replay against another app: %+v; want differences", r)
	}
	var pixels *scenario.Diff
	for i, d := range r.Diffs {
		if d.DiffFile != "" {
			pixels = &r.Diffs[i]
		}
	}
	if pixels == nil {
		t.Fatalf("no difference in a picture: %+v", r.Diffs)
	}
	for _, file := range []string{pixels.WantFile, pixels.GotFile, pixels.DiffFile} {
		if data, err := os.ReadFile(file); err != nil || !strings.HasPrefix(string(data), "\x89PNG") {
			t.Errorf("%s: %v", file, err)
		}
	}
	if !strings.Contains(pixels.Message, "pixels") {
		t.Errorf("difference %+v; want a number of pixels", pixels)
	}
}

// During a replay the camera returns the photo that was taken while recording.
func TestRecordKeepsPhotos(t *testing.T) {
	t.Parallel()
	l := startLocals(t, t.TempDir())
	dir := t.TempDir()
	taken := func(a *testApp, f glasses.Frame) {
		if f.Type == glasses.TypeInput {
			a.ask(glasses.TypeCameraPhoto, glasses.Photo{Width: 320})
		}
	}
	o := startApp(t, l, backend.ClockVirtual, nil, taken)
	played := write(t, filepath.Join(dir, "played.json"), `{"scenario":1,"name":"photo","steps":[
		{"advance":100},{"input":{"kind":"capture"}},{"expect":{"type":"result","payload":{"media":{"mime":"image/jpeg","width":320}}}}]}`)
	if r := runFile(t, l, o.SessionID, played, ""); r.Verdict != scenario.Pass {
		t.Fatalf("%+v", r)
	}
	path := filepath.Join(dir, "photo.json")
	rec, err := scenario.New(l).Record(t.Context(),
		scenario.RecordRequest{Files: ours, SessionID: o.SessionID, Path: path})
	if err != nil || rec.Media != 1 || len(rec.Notes) != 0 {
		t.Fatalf("%+v, %v", rec, err)
	}
	s, err := scenario.Load(t.Context(), ours, path)
	if err != nil || s.Steps[1].Act() != "camera" || s.Steps[2].Act() != "input" {
		data, _ := json.Marshal(s.Steps)
		t.Fatalf("%s, %v", data, err)
	}
	if _, err := os.Stat(filepath.Join(dir, filepath.FromSlash(*s.Steps[1].Camera))); err != nil {
		t.Error(err)
	}
	o = startApp(t, l, backend.ClockVirtual, nil, taken)
	if r := runFile(t, l, o.SessionID, path, ""); r.Verdict != scenario.Pass {
		t.Errorf("%+v", r)
	}
}

// A report lists the failure of every kind of step, and the run continues after a failure.
func TestWhatWasMissed(t *testing.T) {
	t.Parallel()
	l := startLocals(t, t.TempDir())
	dir := t.TempDir()
	for _, clock := range []string{backend.ClockVirtual, backend.ClockReal} {
		begin, on := counter()
		o := startApp(t, l, clock, begin, on)
		path := write(t, filepath.Join(dir, "missed.json"), `{"scenario":1,"name":"missed","steps":[
			{"input":{"kind":"tap"}},
			{"expect":{"type":"display.show","payload":{"tree":{"type":"row"}},"withinMs":50}},
			{"expect":{"type":"speech.say","withinMs":50}},
			{"input":{"kind":"tap"}},
			{"expect":{"type":"display.show","absent":true,"withinMs":300}},
			{"expectDisplay":{"text":["count 7"],"withinMs":50}},
			{"expectDisplay":{"text":["count"],"focus":"elsewhere","withinMs":50}},
			{"input":{"kind":"hold"}},
			{"expectDisplay":{"text":["count 2"],"focus":"next"}},
			{"camera":"missing.png"},
			{"picture":"never"}]}`)
		r := runFile(t, l, o.SessionID, path, filepath.Join(dir, "out"))
		want := []string{"", `payload.tree.type is "column", not "row"`, "no speech.say arrived within 50 ms; these came: ", "",
			"display.show arrived, but must not", `"count 7" cannot be read: the panel shows "count 2`,
			`the focus is on "next", not on "elsewhere"`,
			"the glasses refused the request: unsupported", "", "read the step's file", ""}
		for i, s := range r.Steps {
			if !strings.Contains(s.Message, want[i]) || (want[i] == "") != (s.Verdict != scenario.Fail) {
				t.Errorf("%s: step %d (%s): %s %q, want %q", clock, i, s.Step, s.Verdict, s.Message, want[i])
			}
		}
		if r.Verdict != scenario.Fail || r.Steps[10].Verdict != scenario.Skipped || len(r.Pictures) != 2 ||
			r.Pictures[0].File == "" {
			t.Errorf("%s: %+v", clock, r)
		}
	}
}

func TestRunsThatCannotBegin(t *testing.T) {
	t.Parallel()
	l := startLocals(t, t.TempDir())
	o, err := l.StartLocal(t.Context(), caller.Caller{},
		session.LocalRequest{Project: "com.example.app", Clock: backend.ClockVirtual})
	if err != nil {
		t.Fatal(err)
	}
	bad := write(t, filepath.Join(t.TempDir(), "bad.json"), `{"scenario":1,"name":"x","steps":[{"tap":true}]}`)
	for name, c := range map[string]struct{ id, path, code, says string }{
		"no file":     {o.SessionID, "/no/such/file.json", problem.CodeInvalidScenario, "read the scenario"},
		"no scenario": {o.SessionID, bad, problem.CodeInvalidScenario, "bad.json: steps[0].tap: unknown field"},
		"no such session": {"loc_aaaaaaaaaaaaaaaaaaaa", write(t, filepath.Join(t.TempDir(), "a.json"), minute),
			problem.CodeNotFound, "no such session"},
	} {
		_, err := scenario.New(l).Run(t.Context(), scenario.Request{Files: ours, SessionID: c.id, Path: c.path})
		var p *problem.Error
		if !errors.As(err, &p) || p.Code != c.code || !strings.Contains(p.Message, c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
