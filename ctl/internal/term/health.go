package term

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Check is one result of the doctor. State is ok, warn or fail; Fix is the next step.
type Check struct{ Name, State, Detail, Fix string }

var checkSeverity = map[string]Severity{"ok": Good, "warn": Warning, "fail": Bad}

// Checks prints results in order, with the next step for each result that is not ok, and a summary.
func (t *Terminal) Checks(list []Check) {
	wide, count := 0, map[string]int{}
	for _, c := range list {
		wide = max(wide, utf8.RuneCountInString(c.Name))
		count[c.State]++
	}
	indent := wide + 8
	for _, c := range list {
		state := string(t.paint(Cell{c.State, checkSeverity[c.State]})) + pad("", 6-len(c.State))
		text := strings.Join(fold(printable(c.Detail), t.Width-indent), "\n"+pad("", indent))
		t.Row("%s", safeText(strings.TrimRight(state+pad(printable(c.Name), wide+2)+text, " ")))
		if c.State != "ok" && c.Fix != "" {
			t.Row("%s%s", pad("", indent), safeText(strings.Join(fold("next: "+printable(lowered(c.Fix)), t.Width-indent),
				"\n"+pad("", indent))))
		}
	}
	t.Say("")
	switch bad, doubtful := count["fail"], count["warn"]; {
	case bad > 0 && doubtful > 0:
		t.Say("%s %d more to look at.", t.paint(Cell{fmt.Sprintf("%d of %d checks failed,", bad, len(list)), Bad}),
			doubtful)
	case bad > 0:
		t.Say("%s", t.paint(Cell{fmt.Sprintf("%d of %d checks failed.", bad, len(list)), Bad}))
	case doubtful > 0:
		t.Say("%s", t.paint(Cell{fmt.Sprintf("No check failed; %d of %d need attention.", doubtful, len(list)),
			Warning}))
	default:
		t.Say("%s", t.paint(Cell{fmt.Sprintf("All %d checks are fine.", len(list)), Good}))
	}
}

// lowered returns a sentence with a lower-case first letter, for use after a colon.
func lowered(s string) string {
	first, size := utf8.DecodeRuneInString(s)
	if second, _ := utf8.DecodeRuneInString(s[size:]); unicode.IsLower(second) { // the word is not the name of a variable
		first = unicode.ToLower(first)
	}
	return string(first) + strings.TrimSuffix(s[size:], ".")
}

// Need is a problem and its next step.
type Need struct {
	What string `json:"what"`
	Next string `json:"next"`
}

// Needs prints problems to standard error.
func (t *Terminal) Needs(list []Need) {
	if t.TTY && len(list) > 0 {
		t.Remark("")
	}
	for _, n := range list {
		t.Remark("%s", n.What)
		t.Next("%s", n.Next)
	}
}

// Uploading describes whether telemetry is uploaded and which setting decided it.
func Uploading(allowed bool, by string) (lead Cell, rest string) {
	lead.Text = "stays on this machine"
	if allowed {
		lead.Text = "uploaded"
	}
	return lead, " (" + Switch(by, allowed) + ")"
}

// Since returns how long ago a time in Unix ms was, or "-" for 0.
func Since(ms int64, now time.Time) string {
	if ms == 0 {
		return "-"
	}
	if d := now.Sub(time.UnixMilli(ms)); d >= time.Second {
		return Span(d) + " ago"
	}
	return "just now"
}

// Count formats a number with its noun: "1 agent", "3 agents".
func Count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}
