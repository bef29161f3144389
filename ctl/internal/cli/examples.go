package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// examples holds the examples in the help of each command, keyed by the command's path without the program name.
var examples = map[string][]string{
	"accept-privacy":         {"accept-privacy"},
	"account reset-password": {"account reset-password", "account reset-password ada@example.org --stdin < password.txt"},
	"agent add":              {"agent add claude-code cursor", "agent add --all --dry-run", "agent add codex --tools local"},
	"agent list":             {"agent list", "agent list --json"},
	"agent remove":           {"agent remove cursor", "agent remove --all --dry-run"},
	"daemon logs":            {"daemon logs", "daemon logs --follow"},
	"daemon restart":         {"daemon restart"},
	"daemon run":             {"daemon run"},
	"daemon stop":            {"daemon stop"},
	"decline-privacy":        {"decline-privacy"},
	"demo":                   {"demo", "demo --dir /tmp/demo"},
	"doctor":                 {"doctor", "doctor --json"},
	"fonts add":              {"fonts add NotoSansCherokee-Regular.ttf"},
	"fonts list":             {"fonts list"},
	"fonts remove":           {"fonts remove 5f0c8a31"},
	"glasses bench":          {"glasses bench --out my-g1.json"},
	"glasses check":          {"glasses check", `glasses check "Even G1_27"`},
	"glasses conformance":    {"glasses conformance ws://0.0.0.0:8787 --model even_g1"},
	"glasses connect":        {"glasses connect", `glasses connect "Even G1_27"`, "glasses connect --via browser"},
	"glasses disconnect":     {"glasses disconnect"},
	"glasses forget":         {`glasses forget "Even G1_27"`},
	"glasses list":           {"glasses list", "glasses list --known --json"},
	"login":                  {"login", "login --replace"},
	"logout":                 {"logout"},
	"open":                   {"open", "open docs", "open session"},
	"plugin add":             {"plugin add build/my-glasses", "plugin add build/my-glasses --yes"},
	"plugin list":            {"plugin list"},
	"plugin remove":          {"plugin remove my-glasses"},
	"service install":        {"service install"},
	"service start":          {"service start"},
	"service status":         {"service status"},
	"service stop":           {"service stop"},
	"service uninstall":      {"service uninstall"},
	"session close":          {"session close", "session close loc_abcdefgh234567abcdef"},
	"session env":            {`eval "$(servicectl session env)" && node app.js`},
	"session list":           {"session list"},
	"session log":            {"session log --follow", "session log --chip errors --since 120"},
	"session picture":        {"session picture panel.png"},
	"session record":         {"session record recording"},
	"session replay":         {"session replay recording", "session replay scenario.json --junit report.xml"},
	"session run": {"session run scenario.json --junit report.xml -- node app.js",
		"session run tests --models even_g1,rayban_display --html report.html -- node app.js",
		"session run tests --watch -- node app.js", "session run -- node app.js"},
	"session schema":   {"session schema > scenario.schema.json"},
	"session sheet":    {"session sheet sheet.png"},
	"session show":     {"session show", "session show loc_abcdefgh234567abcdef"},
	"status":           {"status", "status --json"},
	"telemetry purge":  {"telemetry purge"},
	"telemetry status": {"telemetry status"},
	"telemetry tail":   {"telemetry tail", "telemetry tail --follow"},
	"tool call": {"tool call createSimulatorSession --arg project=com.example.app",
		`tool call getEventLog '{"since":0}'`},
	"tool list": {"tool list"},
	"uninstall": {"uninstall", "uninstall --purge"},
	"upgrade":   {"upgrade", "upgrade --check"},
	"usage":     {"usage", "usage --project com.example.app --range 30d"},
	"version":   {"version"},
	"whoami":    {"whoami", "whoami --refresh"},
}

// addExamples sets the examples of a command and its subcommands. program is the name of the root command.
func addExamples(cmd *cobra.Command, program string) {
	path := strings.TrimPrefix(strings.TrimPrefix(cmd.CommandPath(), program), " ")
	lines := make([]string, 0, len(examples[path]))
	for _, line := range examples[path] {
		if strings.HasPrefix(line, path) {
			line = program + " " + line
		}
		lines = append(lines, "  "+line)
	}
	cmd.Example = strings.Join(lines, "\n")
	for _, child := range cmd.Commands() {
		addExamples(child, program)
	}
}
