package term

import "os"

// Severity is the meaning of a text, which selects its colour.
type Severity int

// The severities.
const (
	Plain Severity = iota
	Good
	Warning
	Bad
	Faint
	Strong
)

var severityColours = map[Severity]string{Good: "32", Warning: "33", Bad: "31", Faint: "2", Strong: "1"}

// Cell is a text with its severity.
type Cell struct {
	Text     string
	Severity Severity
}

// coloured reports whether colours may be used on a stream: it is a terminal, TERM is not dumb and NO_COLOR
// (no-color.org) is not set.
func coloured(isTerminal bool) bool {
	return isTerminal && os.Getenv("TERM") != "dumb" && os.Getenv("NO_COLOR") == ""
}

func paint(c Cell, colour bool) safeText {
	code, ok := severityColours[c.Severity]
	if !ok || !colour || c.Text == "" {
		return safeText(printable(c.Text))
	}
	return safeText("\x1b[" + code + "m" + printable(c.Text) + "\x1b[0m")
}

// paint returns a cell's text, coloured if standard output may be coloured.
func (t *Terminal) paint(c Cell) safeText { return paint(c, t.Colour) }

// Bold returns s in bold if standard output may be coloured.
func (t *Terminal) Bold(s string) safeText { return t.paint(Cell{s, Strong}) } //nolint:revive // only Say takes it
