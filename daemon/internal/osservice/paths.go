package osservice

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// plain refuses paths that a service's file cannot hold as one word. A line end in a unit begins another setting, which
// systemd would obey; XML cannot hold most control characters; and none of the three takes what is no UTF-8.
func plain(d daemon) error {
	for _, p := range []struct{ what, path string }{
		{"state directory", d.paths.Dir}, {"control socket", d.paths.Control}, {"MCP socket", d.paths.MCP}, {"program", d.program},
	} {
		if !utf8.ValidString(p.path) || strings.ContainsFunc(p.path, notPlain) {
			return &Error{CodeUnsupported, fmt.Sprintf("the path of the %s holds a control character: %q", p.what, p.path),
				"move the programs and the state directory to plain paths"}
		}
	}
	return nil
}

// notPlain are control characters, and those that end a line for some reader.
func notPlain(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }

// plainTask refuses a program whose path the task scheduler would change: it replaces %NAME% and $(NAME).
func plainTask(d daemon) error {
	if strings.Count(d.program, "%") > 1 || strings.Contains(d.program, "$(") {
		return &Error{CodeUnsupported, "the task scheduler takes a part of the program's path for a variable: " + d.program, "move the programs to a plain path"}
	}
	return nil
}
