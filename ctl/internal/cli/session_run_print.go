package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/service-dev/service/ctl/internal/command"
	"github.com/service-dev/service/ctl/internal/term"
)

// states maps run states to their names in reports.
var states = map[runState]string{notRun: "not run", passed: "passed", failed: "failed", broken: "error",
	interrupted: "interrupted"}

// progress prints the job that is starting.
func (b *batch) progress(i int) {
	if b.app.PrintsJSON {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.app.RunProgress(fmt.Sprintf("%d of %d  %s", i+1, len(b.jobs), b.jobs[i].title()))
}

// finish stores the result of a job and prints its line.
func (b *batch) finish(i int, res result) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.results[i] = res
	if b.options.failFast && (res.state == failed || res.state == broken) {
		b.stopped = true
	}
	if b.app.PrintsJSON {
		return
	}
	b.app.RunProgress("")
	if b.single || b.options.quiet || res.state == notRun {
		return
	}
	wide := 0
	for _, j := range b.jobs {
		wide = max(wide, utf8.RuneCountInString(j.title()))
	}
	b.app.RunLine(b.lineOf(i), min(wide, 60))
}

func (b *batch) lineOf(i int) term.Run {
	res := b.results[i]
	r := term.Run{Name: b.jobs[i].title(), State: states[res.state], Took: res.took}
	if res.report != nil {
		r.Duration = time.Duration(res.report.DurationMs) * time.Millisecond
	}
	switch res.state {
	case broken:
		p := command.ProblemOf(res.err)
		r.Failures, r.Output = []term.Failure{{Why: p.Message + "\nnext: " + p.FixHint}}, res.output
	case failed:
		r.Failures, r.Left, r.Output = res.report.failures(), res.left, res.output
	}
	return r
}

// failures returns the failures of a run.
func (r *report) failures() (list []term.Failure) {
	if r.AppLeft != "" { // first, because other failures may result from it
		list = append(list, term.Failure{What: stepAppRuns, Why: r.AppLeft})
	}
	for _, missing := range r.MissingFonts { // second, because other failures may result from it
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

// appFailed marks the run as failed because the app's process exited with an error or after leaving the session early.
// It adds how the process exited to AppLeft, so that the report contains both facts once.
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

// print prints the results of the runs and returns the error that sets the exit code.
func (b *batch) print(ctx context.Context) error {
	if b.single && (!b.options.quiet || b.app.PrintsJSON) {
		return b.printSingle()
	}
	if b.app.PrintsJSON {
		if err := b.app.JSON(b.object()); err != nil {
			return err
		}
		return b.code(ctx)
	}
	var lines []term.Run
	for i := range b.jobs {
		lines = append(lines, b.lineOf(i))
	}
	b.app.RunFailures(lines)
	total := b.totals()
	b.app.RunsVerdict(term.Runs{State: states[total.worst()], Verdict: total.verdict(), Took: b.took, Files: b.written,
		Next: b.next()})
	return b.code(ctx)
}

// printSingle prints one run as the tool reports it.
func (b *batch) printSingle() error {
	res := b.results[0]
	if res.err != nil {
		if res.output != "" && res.state == broken {
			b.app.AppOutput(res.output)
		}
		return res.err
	}
	if res.report == nil {
		return context.Canceled // the run was cancelled before it began
	}
	if res.left != "" {
		b.app.Remark("the app exited before the run ended (%s)", res.left)
	}
	if res.state == failed {
		b.app.AppOutput(res.output)
	}
	report := *res.report
	if b.temp != "" {
		report.forgetFiles()
	}
	err := b.app.printReport(&report, reportOptions{})
	if !b.app.PrintsJSON {
		b.app.RunReports(b.written, b.next())
	}
	return err
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

// totals counts the runs by state.
type totals [interrupted + 1]int

func (b *batch) totals() (count totals) {
	for _, res := range b.results {
		count[res.state]++
	}
	return count
}

// worst returns the state of the whole command. A failed run outweighs a run that was not possible, because it is a
// definite result.
func (c totals) worst() runState {
	for _, state := range []runState{interrupted, failed, broken, notRun} {
		if c[state] > 0 {
			return state
		}
	}
	return passed
}

// verdict summarizes all runs in one line.
func (c totals) verdict() string {
	all := 0
	for _, n := range c {
		all += n
	}
	if c[passed] == all {
		return fmt.Sprintf("%d of %d passed", all, all)
	}
	text := fmt.Sprintf("%d of %d failed", c[failed], all)
	words := map[runState]string{broken: "could not be run", interrupted: "interrupted", notRun: "not run"}
	for _, state := range []runState{broken, interrupted, notRun} {
		if c[state] > 0 {
			text += fmt.Sprintf(", %d %s", c[state], words[state])
		}
	}
	return text
}

// code returns the error that sets the exit code.
func (b *batch) code(ctx context.Context) error {
	switch worst := b.totals().worst(); {
	case ctx.Err() != nil:
		return context.Canceled
	case worst == failed:
		return command.ExitNo
	case worst != passed:
		return command.ExitUnknown
	}
	return nil
}

// object is the JSON output for several runs.
func (b *batch) object() map[string]any {
	type runObject struct {
		Name        string          `json:"name"`
		File        string          `json:"file"`
		DeviceModel string          `json:"deviceModel,omitempty"`
		State       string          `json:"state"`
		Report      json.RawMessage `json:"report,omitempty"`
		Error       *term.Problem   `json:"error,omitempty"`
	}
	runs := []runObject{}
	for i, j := range b.jobs {
		res := b.results[i]
		o := runObject{Name: j.title(), File: j.file, DeviceModel: j.model, State: states[res.state]}
		if res.report != nil {
			report := *res.report
			if b.temp != "" {
				report.forgetFiles()
			}
			o.Report = report.raw
		}
		if res.state == broken {
			p := command.ProblemOf(res.err)
			o.Error = &p
		}
		runs = append(runs, o)
	}
	total := b.totals()
	return map[string]any{"total": len(b.jobs), "passed": total[passed], "failed": total[failed],
		"errors": total[broken], "interrupted": total[interrupted], "notRun": total[notRun], "runs": runs}
}
