package term

import "strconv"

// Font is a line of `fonts list`.
type Font struct {
	Name, SHA256 string
	Weight       int
	Italic       bool
	Bytes        int64
	// Problem is the reason why the font is not used; it is empty for a font in use.
	Problem string
}

// shownHash is how many digits of a hash are printed.
const shownHash = 16

// Fonts prints the added fonts.
func (t *Terminal) Fonts(list []Font) {
	if len(list) == 0 {
		t.Say("No fonts were added.")
		t.Next("`servicectl fonts add FILE` adds one")
		return
	}
	rows := make([][]Cell, 0, len(list))
	damaged := false
	for _, f := range list {
		style, state := strconv.Itoa(f.Weight), Cell{Text: "used", Severity: Good}
		if f.Italic {
			style += " italic"
		}
		if f.Problem != "" {
			state, damaged = Cell{Text: "ignored: " + f.Problem, Severity: Bad}, true
		}
		rows = append(rows, []Cell{{Text: f.Name}, {Text: style}, {Text: size(f.Bytes)},
			{Text: f.SHA256[:min(len(f.SHA256), shownHash)]}, state})
	}
	t.Grid([]string{"NAME", "WEIGHT", "SIZE", "SHA-256", "STATE"}, rows)
	if damaged {
		t.Next("`servicectl fonts add FILE` with the same font repairs it; " +
			"`servicectl fonts remove SHA-256` removes it")
	}
}

// FontAdded reports a new font. The next step identifies it by its hash, because a name may contain shell syntax.
func (t *Terminal) FontAdded(name, hash string) {
	t.Say("Added %s. Local sessions now use it for characters that the service's fonts lack.", name)
	t.Next("show a text, or remove the font with `servicectl fonts remove %s`", hash[:min(len(hash), shownHash)])
}

// FontRemoved reports that a font was removed.
func (t *Terminal) FontRemoved(name string) {
	t.Say("Removed %s. Local sessions no longer use it.", name)
}
