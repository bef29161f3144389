package tools

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/service-dev/service/daemon/internal/scenario"
	"github.com/service-dev/service/internal/problem"
)

const testRecording = `{"scenario":1,"name":"main","steps":[],` +
	`"recorded":{"clock":"virtual","durationMs":1,"trace":[],"pictures":[]}}`

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestRecordSession_OverwritesOnlyRecordings(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "recording", "scenario.json"), testRecording)
	write(t, filepath.Join(root, "recording", "pictures", "a.png"), "x")
	write(t, filepath.Join(root, "byhand", "scenario.json"), `{"scenario":1,"name":"mine","steps":[]}`)
	write(t, filepath.Join(root, "project", "main.go"), "package main")
	write(t, filepath.Join(root, "file"), "x")
	for _, test := range []struct{ dir, code string }{
		{"new/deep", ""}, {"recording", ""}, {"byhand", problem.CodeFileExists}, {"project", problem.CodeFileExists}, {"file",
			problem.CodeFileUnwritable}, {"", problem.CodeInvalidRequest},
	} {
		w := newWorld().locally()
		dir := test.dir
		if dir != "" {
			dir = filepath.Join(root, dir)
		}
		result, fields := w.call(t, "recordSession", `{"dir":`+quote(dir)+`,"since":7}`, IO{})
		if test.code != "" {
			if fields["code"] != test.code || w.recorded.Path != "" {
				t.Errorf("%s: %v", test.dir, fields)
			}
			continue
		}
		if w.recorded.Path != filepath.Join(dir, "scenario.json") || w.recorded.Name != filepath.Base(dir) ||
			w.recorded.Since != 7 || fields["file"] != w.recorded.Path {
			t.Errorf("%s: %+v, %v", test.dir, w.recorded, fields)
		}
		checkNext(t, w.catalogue().List(), "recordSession", result)
	}
}

func TestReplaySession(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "main", "scenario.json"), testRecording)
	write(t, filepath.Join(root, "full", "x"), "x")
	w := newWorld().locally()
	w.report = scenario.Report{Findings: []scenario.Finding{}, Name: "main", Verdict: scenario.Fail, DurationMs: 9,
		Steps: []scenario.StepReport{{Number: 2, Step: "expect display.show", Verdict: scenario.Fail,
			Message: "nothing came"}},
		Diffs:     []scenario.Diff{{Kind: scenario.DiffMissing, Step: 1, AtMs: 7, Message: "display.show is missing"}},
		MoreDiffs: map[string]int{scenario.DiffExtra: 4}, Pictures: []scenario.Picture{}}
	_, fields := w.call(t, "replaySession", `{"file":`+quote(filepath.Join(root,
		"main"))+`,"artifactsDir":`+quote(filepath.Join(root, "out"))+`}`, IO{})
	if summary, _ := fields["summary"].(string); fields["verdict"] != "fail" || fields["status"] != "done" ||
		!strings.Contains(summary, "Step 2 (expect display.show): nothing came") ||
		!strings.HasPrefix(summary, "First divergence in step 1 at 7 ms: display.show is missing. ") ||
		!strings.Contains(summary, "5 differences") {
		t.Errorf("answered %v", fields)
	}
	if w.replayed.Path != filepath.Join(root, "main", "scenario.json") ||
		w.replayed.Artifacts != filepath.Join(root, "out") || w.replayed.SessionID != testLocal {
		t.Errorf("ran %+v", w.replayed)
	}
	for args, code := range map[string]string{
		`{}`: problem.CodeInvalidRequest, `{"file":"/no/such"}`: problem.CodeFileUnreadable,
		`{"file":` + quote(filepath.Join(root, "main")) + `,"artifactsDir":` + quote(filepath.Join(root, "full")) +
			`}`: problem.CodeFileExists,
	} {
		if _, fields := w.call(t, "replaySession", args, IO{}); fields["code"] != code {
			t.Errorf("%s: %v", args, fields)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		w.endless = true
		start := time.Now()
		_, fields := w.call(t, "replaySession", `{"file":`+quote(filepath.Join(root, "main"))+`}`, IO{})
		if fields["code"] != problem.CodeTimeout || time.Since(start) >= time.Minute {
			t.Errorf("a run without end: %v after %v, want a timeout within a minute", fields, time.Since(start))
		}
	})
}

// Accepted differences are not a failure: the summary begins with them.
func TestReplaySession_SaysWhatItAccepted(t *testing.T) {
	words := reportWords(scenario.Report{Name: "main", Verdict: scenario.Pass, Accepted: true,
		Steps: []scenario.StepReport{{}},
		Diffs: []scenario.Diff{{Kind: scenario.DiffChanged, Step: 3, AtMs: 7, Message: "display.show a -> b", Count: 11},
			{Kind: scenario.DiffExtra, Message: "display.show is extra"}}, MoreDiffs: map[string]int{scenario.DiffExtra: 4}})
	if !strings.HasPrefix(words, "Accepted: 11 changed, 5 extra copied into the recording") ||
		strings.Contains(words, "divergence") || !strings.Contains(words, "main: pass") {
		t.Error(words)
	}
}

// However many differences and failures there are, the answer stays short enough for an agent and reports how much it
// omits.
func TestReplaySession_AnswerIsBoundedAndCounts(t *testing.T) {
	r := scenario.Report{Name: "main", Verdict: scenario.Fail, Findings: []scenario.Finding{},
		MoreDiffs: map[string]int{scenario.DiffExtra: 4}}
	for i := range 12 {
		file := fmt.Sprintf("/home/somebody/project/artifacts/step-%d-", i)
		r.Diffs = append(r.Diffs, scenario.Diff{Kind: scenario.DiffChanged, Step: i, Count: 2,
			Message: strings.Repeat("m", 300), WantFile: file + "want.png", GotFile: file + "got.png"})
		r.Pictures = append(r.Pictures, scenario.Picture{File: file + "want.png"}, scenario.Picture{File: file + "got.png"})
	}
	r.Pictures = append(r.Pictures, scenario.Picture{Name: "end", File: "/home/somebody/project/artifacts/end.png"})
	for i := range 9000 {
		r.Steps = append(r.Steps, scenario.StepReport{Number: i, Verdict: scenario.Skipped, Step: "input tap"})
	}
	answer := replayAnswerOf("loc_a", r, false)
	raw, err := json.Marshal(answer)
	if err != nil || len(raw) >= maxReplay {
		t.Errorf("%d bytes, error %v; want fewer than maxReplay", len(raw), err)
	}
	listed := 0
	for _, d := range answer.Diffs {
		listed += d.Times()
	}
	if listed == 0 || listed+answer.MoreDiffs[scenario.DiffChanged] != 24 || answer.MoreDiffs[scenario.DiffExtra] != 4 {
		t.Errorf("%d differences listed, %v more; want 28 in all", listed, answer.MoreDiffs)
	}
	if len(answer.Steps) == 0 || len(answer.Steps)+answer.MoreSteps != 9000 {
		t.Errorf("%d steps listed, %d more; want 9000 in all", len(answer.Steps), answer.MoreSteps)
	}
	if !strings.Contains(answer.Summary, "28 differences") || len(answer.Pictures) != 1 {
		t.Errorf("summary %q, %d pictures; want 28 differences and one picture", answer.Summary, len(answer.Pictures))
	}
	if all := replayAnswerOf("loc_a", r, true); len(all.Steps) != 9000 || len(all.Diffs) != 12 {
		t.Errorf("with all steps: %d steps, %d differences; want 9000 and 12", len(all.Steps), len(all.Diffs))
	}
	if len(r.Diffs) != 12 || r.MoreDiffs[scenario.DiffChanged] != 0 {
		t.Errorf("the report itself was changed: %v", r.MoreDiffs)
	}
}
