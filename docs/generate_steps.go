package docs

import (
	"fmt"
	"strings"

	"github.com/service-dev/service/glasses/scenario"
)

// steps returns one section per kind of step, with its fields and an example.
func steps() string {
	var out strings.Builder
	for _, k := range scenario.Kinds() {
		fmt.Fprintf(&out, "## %s\n\n%s%s\n\nExample: `%s`\n\n", k.Name, k.What, sameAs(k), k.Example)
		fields := k.Fields()
		if len(fields) == 0 {
			fmt.Fprintf(&out, "The value is %s.\n\n", k.Want())
			continue
		}
		out.WriteString("| field | value | what |\n|---|---|---|\n")
		for _, f := range fields {
			what := f.What
			if f.Required {
				what = "Required. " + what
			}
			if f.Default != nil {
				what += fmt.Sprintf(" Default: %v.", f.Default)
			}
			fmt.Fprintf(&out, "| `%s` | %s | %s |\n", f.Name, f.Want, strings.TrimSpace(what))
		}
		out.WriteString("\n")
	}
	return out.String()
}

// sameAs returns the name of the tool with the same effect as a step.
func sameAs(k scenario.Kind) string {
	switch {
	case k.Tool == "":
		return ""
	case k.Argument != "":
		return fmt.Sprintf(" The tool: `%s` with `%s`.", k.Tool, k.Argument)
	}
	if len(k.OnlyStep) > 0 {
		return fmt.Sprintf(" The tool with the same fields, but without `%s`: `%s`.", strings.Join(k.OnlyStep, "` and `"),
			k.Tool)
	}
	return fmt.Sprintf(" The tool with the same fields: `%s`.", k.Tool)
}
