package term

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// Glasses is a pair of real glasses in `glasses list`.
type Glasses struct {
	Name, Model string
	UsedMs      int64  // Unix ms of its last connection; 0 for never
	Arms        []Arm  // empty if the pair is out of range
	Session     string // the session that the pair is connected to; empty if none
}

// Arm is one radio of a pair of glasses. Its signal is in dBm and its battery in percent; both are 0 if unknown.
type Arm struct {
	Key, State      string // State is missing, found, up, opening or down
	Signal, Battery int
}

var armSeverity = map[string]Severity{"found": Good, "up": Good, "missing": Warning, "opening": Warning, "down": Bad}

// Glasses prints a list of glasses. looked reports whether a search has determined which of them are in range.
func (t *Terminal) Glasses(list []Glasses, looked bool, now time.Time) {
	if len(list) == 0 && looked {
		t.Say("No glasses were found.")
		t.Next("open the case next to this computer, and disconnect the phone's app from the glasses")
	} else if len(list) == 0 {
		t.Say("No glasses were connected to this computer yet.")
	}
	if len(list) == 0 {
		return
	}
	head := []string{"NAME", "MODEL", "LAST USED"}
	if looked {
		head = append(head, "IN RANGE")
	}
	rows := make([][]Cell, 0, len(list))
	isHere, isAway := false, false
	for _, g := range list {
		row := []Cell{{Text: g.Name}, {Text: g.Model}, {Text: Since(g.UsedMs, now)}}
		if looked {
			row = append(row, inRange(g))
		}
		isHere = isHere || len(g.Arms) > 0
		isAway = isAway || looked && len(g.Arms) == 0 && g.Session == ""
		rows = append(rows, row)
	}
	t.Grid(head, rows)
	if isHere {
		t.Next("`servicectl glasses connect NAME`")
	}
	if isAway {
		t.Remark("  `servicectl glasses forget NAME` removes glasses that you no longer use")
	}
}

// inRange describes which parts of a pair are in range. A remembered pair is listed even if no part is in range.
func inRange(g Glasses) Cell {
	switch {
	case g.Session != "":
		return Cell{Text: "connected to " + g.Session, Severity: Good}
	case len(g.Arms) == 0:
		return Cell{Text: "remembered, away", Severity: Faint}
	}
	var texts []string
	worst := Good
	for _, a := range g.Arms {
		text := a.Key + " " + cmp.Or(signal(a.Signal), a.State)
		if a.State == "missing" {
			text, worst = a.Key+" missing", Warning
		}
		texts = append(texts, text)
	}
	return Cell{Text: strings.Join(texts, ", "), Severity: worst}
}

// signal formats a signal strength, or returns "" if it is unknown.
func signal(dBm int) string {
	if dBm == 0 {
		return ""
	}
	return fmt.Sprintf("%d dBm", dBm)
}

// Connection is the result of `glasses connect`.
type Connection struct {
	Name, Model, Session string
	IsConnected          bool
	Arms                 []Arm
	Problem, Next        string // why the glasses are not connected, and the next step; empty if unknown
}

// GlassesConnection prints whether glasses are connected, with the next step.
func (t *Terminal) GlassesConnection(c Connection) {
	if c.IsConnected {
		t.Say("%s (%s) is connected to session %s.", c.Name, c.Model, c.Session)
	}
	if len(c.Arms) > 0 {
		rows := make([][]Cell, 0, len(c.Arms))
		for _, a := range c.Arms {
			battery := "-"
			if a.Battery > 0 {
				battery = fmt.Sprintf("%d %%", a.Battery)
			}
			rows = append(rows, []Cell{{Text: a.Key}, {Text: a.State, Severity: armSeverity[a.State]}, {Text: battery},
				{Text: Dash(signal(a.Signal))}})
		}
		t.Grid([]string{"PART", "STATE", "BATTERY", "SIGNAL"}, rows)
	}
	switch {
	case c.IsConnected:
		t.Next("`servicectl session env` prints the variables with which your app attaches")
	case c.Problem != "":
		t.Remark("The glasses are not connected: %s", c.Problem)
		t.Next("%s", lowered(c.Next))
		t.Remark("  Session %s then connects them by itself.", c.Session)
	default:
		t.Say("Session %s is still looking for the glasses and connects them by itself.", c.Session)
		t.Next("`servicectl session env`; your app can attach before the glasses are connected")
	}
}

// GlassesPage asks the user to choose the glasses on a page.
func (t *Terminal) GlassesPage(url string, steps []string) {
	for _, step := range steps {
		t.Remark("  %s", step)
	}
	t.Remark("  Then choose the glasses on this page, in Chrome or Edge on this computer: %s", url)
}

// GlassesNotice prints what the wearer of the glasses may see, and the next step.
func (t *Terminal) GlassesNotice(text string) { t.Remark("  %s", text) }

// GlassesDisconnected reports the sessions that were closed.
func (t *Terminal) GlassesDisconnected(sessions []string) {
	if len(sessions) == 0 {
		t.Say("No session of this directory has real glasses.")
		return
	}
	t.Say("Closed %s. The glasses are cleared and free.", strings.Join(sessions, ", "))
}
