package cli

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/service-dev/service/ctl/internal/term"
)

// showHelp prints the help of a command: its description, subcommands in groups, flags and examples.
func (a *app) showHelp(cmd *cobra.Command, _ []string) {
	t := *a.Terminal
	t.Out = cmd.OutOrStdout()
	text := cmd.Long
	if text == "" {
		text = cmd.Short + "."
	}
	t.Prose(strings.Replace(text, "\nExit code:", "\n\nExit code:", 1))
	t.Say("\n%s", t.Bold("Usage:"))
	if cmd.HasAvailableSubCommands() {
		t.Row("  %s COMMAND", cmd.CommandPath())
	}
	if !cmd.HasAvailableSubCommands() || !cmd.HasParent() {
		t.Row("  %s", cmd.UseLine())
	}
	for _, g := range cmd.Groups() {
		listCommands(t, g.Title, cmd, g.ID)
	}
	listCommands(t, "Commands:", cmd, "")
	if cmd.HasExample() {
		t.Say("\n%s", t.Bold("Examples:"))
		for line := range strings.Lines(cmd.Example) {
			t.Row("%s", strings.TrimRight(line, "\n"))
		}
	}
	listFlags(t, "Flags:", cmd.LocalFlags())
	listFlags(t, "Flags of every command:", cmd.InheritedFlags())
	if cmd.HasAvailableSubCommands() {
		t.Say("\nMore about a command: `%s COMMAND --help`", cmd.CommandPath())
	}
}

// listCommands prints the commands of a group. It prints no title if the group is empty.
func listCommands(t term.Terminal, title string, cmd *cobra.Command, group string) {
	var rows []term.Fact
	for _, c := range cmd.Commands() {
		if c.GroupID == group && c.IsAvailableCommand() {
			rows = append(rows, term.Fact{Name: "  " + c.Name(), Lead: term.Cell{Text: c.Short}})
		}
	}
	if len(rows) > 0 {
		t.Say("\n%s", t.Bold(title))
		t.Facts(rows)
	}
}

// listFlags prints flags. It prints no title if there are none.
func listFlags(t term.Terminal, title string, flags *pflag.FlagSet) {
	if text := strings.TrimRight(flags.FlagUsagesWrapped(t.Width), "\n"); text != "" {
		t.Say("\n%s", t.Bold(title))
		for line := range strings.Lines(text) {
			t.Row("%s", strings.TrimRight(line, "\n"))
		}
	}
}
