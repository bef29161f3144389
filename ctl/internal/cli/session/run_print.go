package session

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/service-dev/service/ctl/internal/command"
	"github.com/service-dev/service/ctl/internal/term"
	"github.com/service-dev/service/internal/problem"
)

// states maps run states to their names in reports.
var states = map[runState]string{notRun: "not run", passed: "passed", failed: "failed", broken: "error",
	interrupted: "interrupted"}

// progress prints the job that is starting.
func (b *batch) progress(i int) {
	if b.program.PrintsJSON {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.program.RunProgress(fmt.Sprintf("%d of %d  %s", i+1, len(b.jobs), b.jobs[i].title()))
}

// finish stores the result of a job and prints its line.
func (b *batch) finish(i int, res result) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.results[i] = res
	if b.options.failFast && (res.state == failed || res.state == broken) {
		b.stopped = true
	}
	if b.program.PrintsJSON {
		return
	}
	b.program.RunProgress("")
	if b.single || b.options.quiet || res.state == notRun {
		return
	}
	wide := 0
	for _, j := range b.jobs {
		wide = max(wide, utf8.RuneCountInString(j.title()))
	}
	b.program.RunLine(b.lineOf(i), min(wide, 60))
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

// print prints the results of the runs and returns the error that sets the exit code.
func (b *batch) print(ctx context.Context) error {
	if b.single && (!b.options.quiet || b.program.PrintsJSON) {
		return b.printSingle()
	}
	if b.program.PrintsJSON {
		if err := b.program.JSON(b.object()); err != nil {
			return err
		}
		return b.code(ctx)
	}
	var lines []term.Run
	for i := range b.jobs {
		lines = append(lines, b.lineOf(i))
	}
	b.program.RunFailures(lines)
	total := b.totals()
	b.program.RunsVerdict(term.Runs{State: states[total.worst()], Verdict: total.verdict(), Took: b.took, Files: b.written,
		Next: b.next()})
	return b.code(ctx)
}

// printSingle prints one run as the tool reports it.
func (b *batch) printSingle() error {
	res := b.results[0]
	if res.err != nil {
		if res.output != "" && res.state == broken {
			b.program.AppOutput(res.output)
		}
		return res.err
	}
	if res.report == nil {
		return context.Canceled // the run was cancelled before it began
	}
	if res.left != "" {
		b.program.Remark("the app exited before the run ended (%s)", res.left)
	}
	if res.state == failed {
		b.program.AppOutput(res.output)
	}
	report := *res.report
	if b.temp != "" {
		report.forgetFiles()
	}
	err := b.program.printReport(&report, reportOptions{})
	if !b.program.PrintsJSON {
		b.program.RunReports(b.written, b.next())
	}
	return err
}

// totals counts the runs by state.
type totals [interrupted + 1]int

func (b *batch) totals() (count totals) {
	for _, res := range b.results {
		count[res.state]++
	}
	return count
}

// worst returns the state of the whole command. A failed run takes precedence over a run that could not be completed,
// because it is a definite result.
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
		Error       *problem.Error  `json:"error,omitempty"`
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
			o.Error = p
		}
		runs = append(runs, o)
	}
	total := b.totals()
	return map[string]any{"total": len(b.jobs), "passed": total[passed], "failed": total[failed],
		"errors": total[broken], "interrupted": total[interrupted], "notRun": total[notRun], "runs": runs}
}
