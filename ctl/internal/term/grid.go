package term

import (
	"slices"
	"strings"
)

// Fact is a name with a value: Lead, which may be coloured, followed by Rest.
type Fact struct {
	Name string
	Lead Cell
	Rest string
}

// Facts prints names and values in two columns. On a terminal, long values wrap within their column. A zero Fact prints
// an empty line.
func (t *Terminal) Facts(facts []Fact) { t.facts("", facts) }

func (t *Terminal) facts(margin string, facts []Fact) {
	wide := 0
	for _, f := range facts {
		wide = max(wide, columns(f.Name))
	}
	wide += len(margin) + 2
	for _, f := range facts {
		if f == (Fact{}) {
			t.Say("")
			continue
		}
		lead := printable(f.Lead.Text)
		lines := fold(lead+printable(f.Rest), t.Width-wide)
		if rest, ok := strings.CutPrefix(lines[0], lead); ok {
			lines[0] = string(t.paint(f.Lead)) + rest
		}
		t.Row("%s%s", pad(margin+f.Name, wide), safeText(strings.Join(lines, "\n"+pad("", wide))))
	}
}

// Pairs prints names and values in two columns, like Facts.
func (t *Terminal) Pairs(rows [][]string) {
	facts := make([]Fact, 0, len(rows))
	for _, row := range rows {
		facts = append(facts, Fact{Name: row[0], Lead: Cell{Text: row[1]}})
	}
	t.Facts(facts)
}

// Table prints a heading, the first row, and aligned rows, like Grid.
func (t *Terminal) Table(rows [][]string) {
	cells := make([][]Cell, 0, len(rows))
	for _, row := range rows[1:] {
		line := make([]Cell, 0, len(row))
		for _, text := range row {
			line = append(line, Cell{Text: text})
		}
		cells = append(cells, line)
	}
	t.Grid(rows[0], cells)
}

// Grid prints a heading and aligned rows. The last column is not padded. If the rows do not fit the terminal, it prints
// each row as a list of names and values, because wrapped rows are hard to read and to copy.
func (t *Terminal) Grid(head []string, rows [][]Cell) {
	heading := make([]Cell, len(head))
	for i, word := range head {
		heading[i] = Cell{word, Faint}
	}
	all := slices.Concat([][]Cell{heading}, rows)
	wide := make([]int, len(head))
	for _, row := range all {
		for i, c := range row {
			wide[i] = max(wide[i], columns(printable(c.Text)))
		}
	}
	total := 2 * (len(head) - 1)
	for _, n := range wide {
		total += n
	}
	if t.Width > 0 && total > t.Width {
		t.cards(head, rows)
		return
	}
	for _, row := range all {
		t.Row("%s", t.gridRow(row, wide))
	}
}

func (t *Terminal) gridRow(row []Cell, wide []int) safeText {
	var b strings.Builder
	for i, c := range row {
		b.WriteString(string(t.paint(c)))
		if i < len(row)-1 {
			b.WriteString(pad("", wide[i]-columns(printable(c.Text))+2))
		}
	}
	return safeText(strings.TrimRight(b.String(), " "))
}

// cards prints each row as a list below its first cell, without unknown values.
func (t *Terminal) cards(head []string, rows [][]Cell) {
	for _, row := range rows {
		t.Row("%s", t.Bold(row[0].Text))
		var facts []Fact
		for i, c := range row[1:] {
			if c.Text != "" && c.Text != Dash("") {
				facts = append(facts, Fact{Name: strings.ToLower(head[i+1]), Lead: c})
			}
		}
		t.facts("  ", facts)
	}
}
