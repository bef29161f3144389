package term

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Run is the result of one scenario out of several.
type Run struct {
	Name string
	// State is passed, failed, error, interrupted or not run.
	State    string
	Duration time.Duration // time on the session's clock
	Took     time.Duration
	// Failures lists the failed steps and the differences, or the reason why the run could not be
	// completed.
	Failures []Failure
	// Left describes how the app exited, if it exited before the end of the run. Output is the end of its
	// output.
	Left, Output string
}

// Failure is one reason why a run failed.
type Failure struct{ What, Why string }

// maxRunFailures is the maximum number of failures printed for a run. maxRunOutput is the maximum number of lines
// printed of its app's output.
const (
	maxRunFailures = 10
	maxRunOutput   = 10
)

var runWords = map[string]Cell{"passed": {"ok", Good}, "failed": {"FAIL", Bad}, "error": {"ERROR", Bad},
	"interrupted": {"STOP", Warning}, "not run": {"skip", Faint}}

// RunProgress shows the current run on a terminal that can overwrite lines. An empty text removes it.
func (t *Terminal) RunProgress(text string) {
	if !t.Moves {
		return
	}
	fmt.Fprint(t.Out, "\r\x1b[K")
	if text = printable(text); text == "" {
		return
	}
	if wide := max(t.Width, 20) - 4; utf8.RuneCountInString(text) > wide {
		text = string([]rune(text)[:wide-1]) + "…"
	}
	fmt.Fprint(t.Out, "  "+text)
}

// RunLine prints the result of a run on one line, followed by its failures. wide is the width of the name column.
func (t *Terminal) RunLine(r Run, wide int) {
	word := runWords[r.State]
	pad := strings.Repeat(" ", max(0, 5-len(word.Text)))
	name := printable(r.Name)
	name += strings.Repeat(" ", max(0, wide-utf8.RuneCountInString(name)))
	if r.State != "passed" && r.State != "failed" {
		t.Say("  %s%s %s", t.paint(word), pad, strings.TrimRight(name, " "))
	} else {
		t.Row("  %s%s %s  %10.3f s  %7.2f s", t.paint(word), pad, name, r.Duration.Seconds(), r.Took.Seconds())
	}
	for _, f := range r.Failures[:min(len(r.Failures), 1)] {
		t.failure(f, "        ")
	}
	if more := len(r.Failures) - 1; more > 0 {
		t.Say("        and %d more, see the end", more)
	}
}

func (t *Terminal) failure(f Failure, margin string) {
	why := indentBy(f.Why, len(margin)+2)
	if f.What == "" {
		why = indentBy(f.Why, len(margin))
	} else {
		t.Say("%s", safeText(margin+printable(f.What)))
	}
	if strings.TrimSpace(f.Why) != "" {
		t.Say("%s", why)
	}
}

// RunFailures repeats all failures at the end, with the end of the app's output.
func (t *Terminal) RunFailures(runs []Run) {
	first := true
	for _, r := range runs {
		if len(r.Failures) == 0 {
			continue
		}
		if first {
			t.Say("")
			t.Say("%s", t.paint(Cell{"What failed", Bad}))
			first = false
		}
		t.Say("  %s", t.Bold(r.Name))
		for _, f := range r.Failures[:min(len(r.Failures), maxRunFailures)] {
			t.failure(f, "    ")
		}
		if more := len(r.Failures) - maxRunFailures; more > 0 {
			t.Say("    and %d more, see the report", more)
		}
		if r.Left != "" {
			t.Say("    the app exited before the run ended (%s)", r.Left)
		}
		if text := strings.TrimSpace(r.Output); text != "" {
			lines := strings.Split(text, "\n")
			t.Say("    the app's output ends with:")
			t.Row("%s", indentBy(strings.Join(lines[max(0, len(lines)-maxRunOutput):], "\n"), 6))
		}
	}
	if !first {
		t.Say("")
	}
}

// Runs is the result of several scenarios.
type Runs struct {
	// State is the worst state of any run, and Verdict summarises all runs in a few words.
	State, Verdict string
	Took           time.Duration
	// Files are the paths of the written reports; Next is the next step.
	Files []string
	Next  string
}

// RunsVerdict prints the final lines after several runs, with the next step.
func (t *Terminal) RunsVerdict(r Runs) {
	word := runWords[r.State]
	if r.State == "passed" {
		word.Text = "PASS"
	}
	t.Say("%s  %s, %.2f s", t.paint(word), r.Verdict, r.Took.Seconds())
	t.RunReports(r.Files, r.Next)
}

// RunReports prints the paths of the written reports and the next step.
func (t *Terminal) RunReports(files []string, next string) {
	for _, file := range files {
		t.Row("  report  %s", file)
	}
	if next == "" {
		return
	}
	t.facts("  ", []Fact{{Name: "next  ", Lead: Cell{Text: next}}})
}

// Watching prints that the command is waiting for a change, and which files it ignores from now on.
func (t *Terminal) Watching(ignored []string) {
	for _, path := range ignored {
		t.Remark("the runs write %s themselves, so its changes are now ignored", path)
	}
	t.Remark("Waiting for a change. Press Ctrl-C to stop.")
}

// RunsAgain prints the file that triggers the next runs. more is the number of other changed files.
func (t *Terminal) RunsAgain(path string, more int) {
	t.Remark("")
	if more == 0 {
		t.Remark("%s changed", path)
	} else {
		t.Remark("%s and %d more changed", path, more)
	}
}

// AppRuns prints that an app is running in a session until it exits.
func (t *Terminal) AppRuns(session, model, clock string) {
	t.Remark("Session %s is open: %s, clock %s. Ctrl-C ends it and the app.", session, model, clock)
}

// RunGlassesConnected prints that the real glasses of a run are connected.
func (t *Terminal) RunGlassesConnected(name string) { t.Remark("%s are connected.", name) }

// RunGlassesMissing prints why the real glasses of a run are not connected yet, with the next step.
func (t *Terminal) RunGlassesMissing(problem, next string) {
	t.Remark("The glasses are not connected: %s", problem)
	t.Remark("  next: %s", lowered(next))
	t.Remark("  The session then connects them by itself.")
}

// AppEnded prints how the app exited.
func (t *Terminal) AppEnded(how string) { t.Remark("The app exited (%s). Its session is closed.", how) }
