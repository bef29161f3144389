package agents

import "strings"

// Diff returns the changed lines, each with a leading - or +, or "" if there are none.
func (c Change) Diff() string {
	if !c.Changed() {
		return ""
	}
	before, after := strings.SplitAfter(string(c.Before), "\n"), strings.SplitAfter(string(c.After), "\n")
	for len(before) > 0 && len(after) > 0 && before[0] == after[0] {
		before, after = before[1:], after[1:]
	}
	for len(before) > 0 && len(after) > 0 && before[len(before)-1] == after[len(after)-1] {
		before, after = before[:len(before)-1], after[:len(after)-1]
	}
	var out strings.Builder
	mark := func(sign string, lines []string) {
		for _, line := range lines {
			if line != "" {
				out.WriteString(sign + " " + strings.TrimRight(line, "\r\n") + "\n")
			}
		}
	}
	mark("-", before)
	mark("+", after)
	return out.String()
}
