package term

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Severity selects the colour of a text.
type Severity int

// The severities.
const (
	Plain Severity = iota
	Good
	Warning
	Bad
	Faint
)

var severityColours = map[Severity]string{Good: "32", Warning: "33", Bad: "31", Faint: "2"}

// Cell is a text with its severity.
type Cell struct {
	Text     string
	Severity Severity
}

func (t *Terminal) paint(c Cell) safeText {
	code, ok := severityColours[c.Severity]
	if !ok || !t.Colour || c.Text == "" {
		return safeText(printable(c.Text))
	}
	return safeText("\x1b[" + code + "m" + printable(c.Text) + "\x1b[0m")
}

// Fact is a name with a value: Lead, which may be coloured, followed by Rest.
type Fact struct {
	Name string
	Lead Cell
	Rest string
}

// Facts prints names and values in two columns. On a terminal long values wrap within their column. A zero Fact prints
// an empty line.
func (t *Terminal) Facts(facts []Fact) {
	wide := 0
	for _, f := range facts {
		wide = max(wide, utf8.RuneCountInString(f.Name))
	}
	for _, f := range facts {
		if f == (Fact{}) {
			t.Say("")
			continue
		}
		lead := printable(f.Lead.Text)
		lines := t.wrap(lead+printable(f.Rest), wide+2)
		if rest, ok := strings.CutPrefix(lines[0], lead); ok {
			lines[0] = string(t.paint(f.Lead)) + rest
		}
		t.Say("%s%s", pad(f.Name, wide+2), safeText(strings.Join(lines, "\n"+pad("", wide+2))))
	}
}

// Grid prints a heading and aligned rows. The last column is not padded.
func (t *Terminal) Grid(head []string, rows [][]Cell) {
	wide := make([]int, len(head))
	for i, word := range head {
		wide[i] = utf8.RuneCountInString(word)
	}
	for _, row := range rows {
		for i, c := range row {
			wide[i] = max(wide[i], utf8.RuneCountInString(printable(c.Text)))
		}
	}
	line := func(row []Cell) safeText {
		var b strings.Builder
		for i, c := range row {
			b.WriteString(string(t.paint(c)))
			if i < len(row)-1 {
				b.WriteString(pad("", wide[i]-utf8.RuneCountInString(printable(c.Text))+2))
			}
		}
		return safeText(strings.TrimRight(b.String(), " "))
	}
	heading := make([]Cell, len(head))
	for i, word := range head {
		heading[i] = Cell{word, Faint}
	}
	t.Say("%s", line(heading))
	for _, row := range rows {
		t.Say("%s", line(row))
	}
}

// Check is one result of the doctor. State is ok, warn or fail; Fix is the next step.
type Check struct{ Name, State, Detail, Fix string }

var checkSeverity = map[string]Severity{"ok": Good, "warn": Warning, "fail": Bad}

// Checks prints results in order, with the next step for each that is not ok, and a summary.
func (t *Terminal) Checks(list []Check) {
	wide, count := 0, map[string]int{}
	for _, c := range list {
		wide = max(wide, utf8.RuneCountInString(c.Name))
		count[c.State]++
	}
	indent := wide + 8
	for _, c := range list {
		state := string(t.paint(Cell{c.State, checkSeverity[c.State]})) + pad("", 6-len(c.State))
		text := strings.Join(t.wrap(printable(c.Detail), indent), "\n"+pad("", indent))
		t.Say("%s", safeText(strings.TrimRight(state+pad(printable(c.Name), wide+2)+text, " ")))
		if c.State != "ok" && c.Fix != "" {
			t.Say("%s%s", pad("", indent), safeText(strings.Join(t.wrap("next: "+printable(lowered(c.Fix)), indent),
				"\n"+pad("", indent))))
		}
	}
	t.Say("")
	switch bad, doubtful := count["fail"], count["warn"]; {
	case bad > 0 && doubtful > 0:
		t.Say("%s %d more should be looked at.", t.paint(Cell{fmt.Sprintf("%d of %d checks failed,", bad, len(list)), Bad}),
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
	if second, _ := utf8.DecodeRuneInString(s[size:]); unicode.IsLower(second) { // not the name of a variable
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
		t.Remark("  next: %s", n.Next)
	}
}

// Uploading says whether telemetry is uploaded and which setting decided that.
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

func pad(s string, wide int) string {
	return s + strings.Repeat(" ", max(0, wide-utf8.RuneCountInString(s)))
}

// narrowest is the minimum number of columns in which wrapped text is readable.
const narrowest = 30

// wrap breaks text at spaces to fit the columns that remain after indent. If the width is unknown it returns one line.
func (t *Terminal) wrap(text string, indent int) []string {
	room := t.Width - indent
	if room < narrowest || utf8.RuneCountInString(text) <= room {
		return []string{text}
	}
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > room {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
