package osservice

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/service-dev/service/internal/problem"
)

// plain refuses paths that a service's file cannot contain as one word. A line break starts another setting in a unit,
// XML cannot represent most control characters, and no service manager accepts invalid UTF-8.
func plain(d daemon) error {
	for _, p := range []struct{ what, path string }{
		{"state directory", d.paths.Dir}, {"control socket", d.paths.Control}, {"MCP socket", d.paths.MCP},
		{"program", d.program},
	} {
		if !utf8.ValidString(p.path) || strings.ContainsFunc(p.path, isSpecial) {
			return problem.New(problem.CodeServiceUnsupported,
				fmt.Sprintf("the path of the %s contains a control character: %q", p.what, p.path),
				"Move the programs and the state directory to plain paths.")
		}
	}
	return nil
}

// isSpecial reports whether r is a control character or a line break for some reader.
func isSpecial(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }

// plainTask refuses a program whose path the Task Scheduler would change, because it expands %NAME% and $(NAME).
func plainTask(d daemon) error {
	if strings.Count(d.program, "%") > 1 || strings.Contains(d.program, "$(") {
		return problem.New(problem.CodeServiceUnsupported,
			"the task scheduler would expand a variable in the program's path: "+d.program,
			"Move the programs to a plain path.")
	}
	return nil
}
