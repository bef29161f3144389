package term

import (
	"fmt"
	"strings"
	"time"
)

// Row is one row of an event log.
type Row struct {
	Seq, AtMs                         int64
	Chip, Kind, Type, Sender, Payload string
}

// widest is the maximum number of characters of a payload that are shown.
const widest = 160

// EventRow prints a row on one line.
func (t *Terminal) EventRow(r Row) {
	row := printable(fmt.Sprintf("%6d  %s  %-9s  %-7s  %-20s", r.Seq, Clock(r.AtMs), r.Chip, r.Kind, r.Type))
	gap, limit := "  ", widest
	if room := t.Width - columns(row) - len(gap); t.Width > 0 && room < narrowest {
		gap = "\n        " // the payload gets a line of its own
		limit = min(limit, max(t.Width-len(gap), narrowest))
	} else if t.Width > 0 {
		limit = min(limit, room)
	}
	payload := strings.Join(strings.Fields(r.Payload), " ")
	if cut := []rune(payload); len(cut) > limit {
		payload = string(cut[:limit-1]) + "…"
	}
	t.Row("%s", safeText(strings.TrimRight(row+gap+printable(payload), " ")))
}

// Clock formats a time on a session's clock: real time as the time of day, virtual time in seconds.
func Clock(ms int64) string {
	if ms > 1e12 {
		return time.UnixMilli(ms).Format("15:04:05.000")
	}
	return fmt.Sprintf("%10.3f s", float64(ms)/1000)
}

// SessionDisplay prints the text on a panel.
func (t *Terminal) SessionDisplay(text []string, focus string) {
	if len(text) == 0 {
		t.Say("display      clear")
		return
	}
	t.Say("display")
	for _, line := range text {
		t.Row("    %s", line)
	}
	if focus != "" {
		t.Say("focus        %s", focus)
	}
}

// Step is the result of one step of a scenario.
type Step struct {
	Verdict, Step, Message string
	AtMs                   int64
}

// Diff is one difference between a recording and a run.
type Diff struct {
	Step                           int // starting at 1
	Kind, Path, Message, Want, Got string
	Files                          []string
}

// Report is the result of a scenario.
type Report struct {
	Name, Verdict string
	AppLeft       string // when the app left, if it should have stayed attached
	DurationMs    int64
	Took          time.Duration
	Steps         []Step
	Diffs         []Diff
	Pictures      []string
	Notes         []string
}

// ScenarioReport prints a report: steps, differences, pictures and verdict.
func (t *Terminal) ScenarioReport(r Report) {
	t.Say("%s", t.Bold(r.Name))
	if r.AppLeft != "" {
		t.Say("  %s %s", t.paint(stepWords["fail"]), r.AppLeft)
	}
	failed := 0
	for i, s := range r.Steps {
		word := stepWords[s.Verdict]
		t.Row("  %s%s %3d  %10.3f s  %s", t.paint(word), strings.Repeat(" ", max(0, 4-len(word.Text))), i+1,
			float64(s.AtMs)/1000, s.Step)
		if s.Verdict == "fail" {
			failed++
		}
		if s.Message != "" {
			t.Say("%s", indentBy(s.Message, 29))
		}
	}
	for _, d := range r.Diffs {
		where := d.Kind
		if d.Path != "" {
			where += " " + d.Path
		}
		t.Say("  DIFF step %d, %s: %s", d.Step, where, d.Message)
		if d.Want != "" || d.Got != "" {
			t.Row("         want %s", shorten(d.Want))
			t.Row("         got  %s", shorten(d.Got))
		}
		for _, f := range d.Files {
			t.Row("         see  %s", f)
		}
	}
	for _, p := range r.Pictures {
		t.Row("  picture %s", p)
	}
	for _, n := range r.Notes {
		t.Say("  %s", n)
	}
	t.scenarioVerdict(r, failed)
}

var stepWords = map[string]Cell{"pass": {"ok", Good}, "fail": {"FAIL", Bad}, "skipped": {"skip", Faint}}

// maxOnScreen is the number of steps assumed to fit on a screen. A failure followed by at least that many steps is
// repeated at the end.
const maxOnScreen = 20

func (t *Terminal) scenarioVerdict(r Report, failed int) {
	verdict, steps := Cell{"PASS", Good}, fmt.Sprintf("%d steps", len(r.Steps))
	if r.Verdict != "pass" {
		verdict = Cell{"FAIL", Bad}
		if len(r.Steps) > maxOnScreen {
			for i, s := range r.Steps {
				if s.Verdict == "fail" {
					t.failure(Failure{fmt.Sprintf("step %d  %s", i+1, s.Step), s.Message}, "  ")
				}
			}
		}
		if failed > 0 {
			steps = fmt.Sprintf("%d of %d steps failed", failed, len(r.Steps))
		}
		if len(r.Diffs) > 0 {
			steps += fmt.Sprintf(", %d differences", len(r.Diffs))
		}
	}
	t.Say("%s  %s, %.3f s of session time, %.2f s of real time", t.paint(verdict), steps,
		float64(r.DurationMs)/1000, r.Took.Seconds())
}

// AppOutput prints the end of an app's output, to explain a failure.
func (t *Terminal) AppOutput(text string) {
	if strings.TrimSpace(text) == "" {
		t.Remark("the app printed nothing")
		return
	}
	t.Remark("the app's output:")
	t.RemarkRow("%s", indent(text))
}

func shorten(s string) string {
	if cut := []rune(s); len(cut) > 400 {
		return string(cut[:400]) + "…"
	}
	return Dash(s)
}

func indentBy(text string, n int) safeText {
	margin := strings.Repeat(" ", n)
	return safeText(margin + strings.ReplaceAll(string(block(strings.TrimRight(text, "\n"))), "\n", "\n"+margin))
}
