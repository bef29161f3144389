package session

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/service-dev/service/ctl/internal/command"
	"github.com/service-dev/service/ctl/internal/junit"
	"github.com/service-dev/service/ctl/internal/term"
	"github.com/service-dev/service/internal/fileowner"
)

// reportStep is a step of a report.
type reportStep struct {
	Step, Verdict, Message string
	AtMs                   int64
}

// report is the result of replaySession.
type report struct {
	Name, Verdict, SessionID string
	AppLeft                  string // when the app left or how it exited, if no step expects that
	DurationMs               int64
	Steps                    []reportStep
	Diffs                    []struct {
		Step                           int
		Kind, Path, Message, Want, Got string
		WantFile, GotFile, DiffFile    string
		Count                          int
		AlsoSteps                      []int
	}
	MissingFonts []string
	MoreDiffs    map[string]int
	Accepted     bool

	AcceptedSteps, DifferingSteps []int
	Pictures                      []struct {
		Name, File, SHA256 string
		AtMs               int64
	}
	Frames []struct {
		AtMs         int64
		SHA256, File string
	}
	MoreFrames int
	Findings   []struct {
		DeviceModel string
		misfit
	}
	MoreFindings int

	raw    json.RawMessage
	took   time.Duration
	output string // the app's output, if this command started it
}

// printReport prints a report, writes it as JUnit if requested, and returns the exit code.
func (p *program) printReport(r *report, o reportOptions) error {
	if o.junit != "" {
		if err := writeReport(o.junit, junit.Encode(r.suite())); err != nil {
			return err
		}
	}
	err := p.Print(r.raw, func() { p.ScenarioReport(r.summary()) })
	if err == nil && r.Verdict != "pass" {
		return command.ExitNo
	}
	return err
}

func (r *report) summary() term.Report {
	out := term.Report{Name: r.Name, Verdict: r.Verdict, AppLeft: r.AppLeft, DurationMs: r.DurationMs, Took: r.took}
	for _, s := range r.Steps {
		out.Steps = append(out.Steps, term.Step{Verdict: s.Verdict, Step: s.Step, Message: s.Message, AtMs: s.AtMs})
	}
	for _, d := range r.Diffs {
		if d.Count > 1 {
			d.Message += fmt.Sprintf(" (%d times", d.Count)
			if len(d.AlsoSteps) > 0 {
				d.Message += ", also in " + stepList(d.AlsoSteps)
			}
			d.Message += ")"
		}
		diff := term.Diff{Step: d.Step, Kind: d.Kind, Path: d.Path, Message: d.Message, Want: d.Want, Got: d.Got}
		for _, f := range []string{d.WantFile, d.GotFile, d.DiffFile} {
			if f != "" {
				diff.Files = append(diff.Files, f)
			}
		}
		out.Diffs = append(out.Diffs, diff)
	}
	for _, p := range r.Pictures {
		if p.File != "" {
			out.Pictures = append(out.Pictures, p.File)
		}
	}
	out.Notes = append(append(out.Notes, r.MissingFonts...), r.moreDiffs()...)
	if r.Accepted {
		out.Notes = append(out.Notes, "the recording was updated to the app's new behaviour")
	}
	if len(r.AcceptedSteps) > 0 {
		out.Notes = append(out.Notes, "accepted into the recording: "+stepList(r.AcceptedSteps))
		if len(r.DifferingSteps) > 0 {
			out.Notes = append(out.Notes, "still different: "+stepList(r.DifferingSteps))
		}
	}
	out.Notes = append(out.Notes, r.misfits()...)
	return out
}

func stepList(numbers []int) string {
	return "step " + strings.ReplaceAll(strings.Trim(fmt.Sprint(numbers), "[]"), " ", ", ")
}

// moreDiffs returns how many differences the report omits, one line per kind.
func (r *report) moreDiffs() []string {
	var lines []string
	for _, kind := range slices.Sorted(maps.Keys(r.MoreDiffs)) {
		lines = append(lines, fmt.Sprintf("%d more differences: %s", r.MoreDiffs[kind], kind))
	}
	return lines
}

// misfits returns the displayed elements that do not fit the glasses, one line each.
func (r *report) misfits() []string {
	var lines []string
	for _, f := range r.Findings {
		lines = append(lines, fmt.Sprintf("does not fit %s: %s %s %q", f.DeviceModel, f.Kind, f.Path, f.Text))
	}
	if r.MoreFindings > 0 {
		lines = append(lines, fmt.Sprintf("does not fit: %d more", r.MoreFindings))
	}
	return lines
}

// suite converts the report to JUnit, with one case per step and one per difference.
func (r *report) suite() junit.Suite {
	s := junit.Suite{Name: r.Name, Took: r.took, Output: r.output}
	before := int64(0)
	for i, step := range r.allSteps() {
		c := junit.Case{Name: fmt.Sprintf("%03d %s", i+1, step.Step), Seconds: float64(max(step.AtMs-before, 0)) / 1000}
		before = step.AtMs
		switch step.Verdict {
		case "fail":
			c.Failure = step.Message
		case "skipped":
			c.Skipped = true
		}
		s.Cases = append(s.Cases, c)
	}
	if !r.Accepted { // accepted differences are now part of the recording
		recorded := func(what, failure string) {
			name := fmt.Sprintf("%03d as recorded: %s", len(s.Cases)+1, what)
			s.Cases = append(s.Cases, junit.Case{Name: name, Failure: failure})
		}
		for _, d := range r.Diffs {
			recorded(strings.TrimSpace(d.Kind+" "+d.Path), fmt.Sprintf("%s\nwant %s\ngot  %s", d.Message, d.Want, d.Got))
		}
		for _, line := range r.moreDiffs() {
			recorded(line, line)
		}
	}
	if len(s.Cases) == 0 {
		s.Cases = []junit.Case{{Name: "as recorded"}}
	}
	return s
}

// failures returns the failures of a run.
func (r *report) failures() (list []term.Failure) {
	if r.AppLeft != "" { // reported first, because other failures may result from it
		list = append(list, term.Failure{What: stepAppRuns, Why: r.AppLeft})
	}
	for _, missing := range r.MissingFonts { // reported second, because it may cause other failures
		if r.Verdict != "pass" {
			list = append(list, term.Failure{What: missing})
		}
	}
	for i, s := range r.Steps {
		if s.Verdict == "fail" {
			list = append(list, term.Failure{What: fmt.Sprintf("step %d  %s", i+1, s.Step), Why: s.Message})
		}
	}
	for _, d := range r.summary().Diffs {
		f := term.Failure{Why: d.Message,
			What: fmt.Sprintf("step %d  not as recorded: %s %s", d.Step, d.Kind, d.Path)}
		if d.Want != "" || d.Got != "" {
			f.Why += fmt.Sprintf("\nwant %s\ngot  %s", term.Dash(d.Want), term.Dash(d.Got))
		}
		list = append(list, f)
	}
	for _, line := range r.moreDiffs() {
		list = append(list, term.Failure{What: "not as recorded: " + line})
	}
	return list
}

// stepAppRuns is the name of the failed step for an app that did not stay attached.
const stepAppRuns = "the app runs to the end"

// allSteps returns the steps, plus stepAppRuns if the app did not stay attached.
func (r *report) allSteps() []reportStep {
	if r.AppLeft == "" {
		return r.Steps
	}
	return append(slices.Clone(r.Steps),
		reportStep{Step: stepAppRuns, Verdict: "fail", AtMs: r.DurationMs, Message: r.AppLeft})
}

// appFailed marks the run as failed because the app's process exited with an error or after leaving the session
// early. It adds to AppLeft how the process exited, so that the report states both facts once.
func (r *report) appFailed(how string) {
	r.Verdict = "fail"
	r.AppLeft = cmp.Or(r.AppLeft, "the app exited before the run ended") + " (" + how + ")"
	var object map[string]any
	if json.Unmarshal(r.raw, &object) != nil {
		return
	}
	object["verdict"], object["appLeft"] = r.Verdict, r.AppLeft
	if raw, err := json.Marshal(object); err == nil {
		r.raw = raw
	}
}

// forgetFiles removes the paths of pictures that are deleted when the command exits.
func (r *report) forgetFiles() {
	r.Pictures, r.Diffs = nil, append(r.Diffs[:0:0], r.Diffs...)
	for i := range r.Diffs {
		r.Diffs[i].WantFile, r.Diffs[i].GotFile, r.Diffs[i].DiffFile = "", "", ""
	}
	var value any
	if json.Unmarshal(r.raw, &value) != nil {
		return
	}
	dropFiles(value)
	if raw, err := json.Marshal(value); err == nil {
		r.raw = raw
	}
}

func dropFiles(value any) {
	switch v := value.(type) {
	case map[string]any:
		for _, name := range []string{"file", "wantFile", "gotFile", "diffFile", "frames", "moreFrames"} {
			delete(v, name)
		}
		for _, member := range v {
			dropFiles(member)
		}
	case []any:
		for _, entry := range v {
			dropFiles(entry)
		}
	}
}

// writeReport replaces a report atomically, so that no reader sees a partial one. It follows a symbolic link, and
// writes directly to a device or pipe.
func writeReport(file string, data []byte) error {
	fail := func(err error) error { return fmt.Errorf("write the report: %w", err) }
	target := file
	if real, err := filepath.EvalSymlinks(file); err == nil {
		target = real
	}
	mode, keepOwner := fs.FileMode(0o644), func(*os.File) error { return nil }
	if info, err := os.Stat(target); err == nil {
		if !info.Mode().IsRegular() {
			if err := os.WriteFile(target, data, mode); err != nil {
				return fail(err)
			}
			return nil
		}
		mode = info.Mode().Perm()
		keepOwner = func(f *os.File) error { return fileowner.KeepOwner(f, info) }
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return fail(err)
	}
	temp, err := os.CreateTemp(filepath.Dir(target), reportTemp+"*")
	if err != nil {
		return fail(err)
	}
	_, err = temp.Write(data)
	for _, step := range []func() error{
		func() error { return keepOwner(temp) }, func() error { return temp.Chmod(mode) }, temp.Sync, temp.Close,
		func() error { return os.Rename(temp.Name(), target) },
	} {
		if err == nil {
			err = step()
		}
	}
	if err != nil {
		_ = temp.Close()
		_ = os.Remove(temp.Name())
		return fail(err)
	}
	return nil
}

// reportTemp is the prefix of the temporary file of a report.
const reportTemp = ".service-report-"
