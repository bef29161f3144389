package osservice

import (
	_ "embed"
	"strings"
)

// unitSign is part of every unit that install wrote.
const unitSign = "# Written by `servicectl service install`"

//go:embed templates/serviced.socket
var socketTemplate string

// socketUnit returns the unit of the sockets to which clients connect. The first client starts the daemon.
func socketUnit(d daemon) string {
	return expand(socketTemplate, "name", d.name, "control", specifiers(d.paths.Control), "mcp", specifiers(d.paths.MCP))
}

//go:embed templates/serviced.service
var serviceTemplate string

// serviceUnit returns the daemon's unit. It forbids what the daemon does not need. It does not use options such as
// ProtectSystem or PrivateTmp, because they require privileges or user namespaces and would prevent the daemon from
// starting without these. The browser is opened outside this unit, because it outlives the daemon and needs operations
// that are forbidden here.
func serviceUnit(d daemon) string {
	environment := quoted("SERVICE_CONFIG_DIR=" + d.paths.Dir)
	return expand(serviceTemplate, "name", d.name, "program", quoted(d.program), "environment", environment)
}

// expand replaces {{NAME}} in a template. pairs alternates names and values.
func expand(template string, pairs ...string) string {
	for i := 0; i < len(pairs); i += 2 {
		pairs[i] = "{{" + pairs[i] + "}}"
	}
	return strings.NewReplacer(pairs...).Replace(strings.ReplaceAll(template, "\r\n", "\n"))
}

// specifiers escapes the % character, which systemd expands.
func specifiers(s string) string { return strings.ReplaceAll(s, "%", "%%") }

// quoted returns s as one word in a line of a unit.
func quoted(s string) string {
	return `"` + specifiers(strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s)) + `"`
}

// programOf returns the program that a unit written by install starts, or "".
func programOf(unit string) string {
	for line := range strings.Lines(unit) {
		rest, ok := strings.CutPrefix(line, `ExecStart="`)
		if !ok {
			continue
		}
		var b strings.Builder
		for i := 0; i < len(rest); i++ {
			switch c := rest[i]; {
			case c == '"':
				return b.String()
			case (c == '\\' || c == '%') && i+1 < len(rest):
				i++
				b.WriteByte(rest[i])
			default:
				b.WriteByte(c)
			}
		}
	}
	return ""
}

// properties parses the output of `systemctl show` for several units: lines NAME=VALUE, with an empty line between
// units.
func properties(text string) (units []map[string]string) {
	for block := range strings.SplitSeq(strings.ReplaceAll(text, "\r", ""), "\n\n") {
		unit := map[string]string{}
		for line := range strings.Lines(block) {
			if name, value, ok := strings.Cut(strings.TrimRight(line, "\n"), "="); ok {
				unit[name] = value
			}
		}
		if len(unit) > 0 {
			units = append(units, unit)
		}
	}
	return units
}
