// Package command contains code shared by the commands of servicectl and service-mcp: the program with its streams,
// constructors of commands and groups, connections to the daemon, tool calls and exit codes. It must not depend on
// any one command.
package command

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/ctl/internal/term"
)

// Program is the program that runs one command line. Its commands share it.
type Program struct {
	*term.Terminal
	Name string // servicectl or service-mcp
	In   io.Reader
	// PrintsJSON prints results and errors as JSON; it is the flag --json.
	PrintsJSON bool
}

// Print prints the result of a command: object as JSON with --json, or the text that say prints.
func (p *Program) Print(object any, say func()) error {
	if p.PrintsJSON {
		return p.JSON(object)
	}
	say()
	return nil
}

// New returns a command without arguments. long may be empty.
func New(use, short, long string, run func(context.Context) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Long: long, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context()) },
	}
}

// Group returns a command that has only subcommands.
func Group(use, short, long string, subcommands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long, Args: OnlySubcommands,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(subcommands...)
	cmd.AddCommand(HelpOf(cmd))
	return cmd
}

// HelpOf returns a group's "help [COMMAND]" command, which prints the same text as --help.
func HelpOf(group *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", Short: "Explain a command", Hidden: true, Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			about, _, err := group.Find(args)
			if err != nil || len(args) > 0 && about == group {
				return OnlySubcommands(group, args)
			}
			return about.Help()
		},
	}
}

// OnlySubcommands rejects an argument that is not a subcommand, and suggests subcommands with a similar name.
func OnlySubcommands(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = 2
	next := fmt.Sprintf("run `%s --help` to see the commands", cmd.CommandPath())
	if similar := cmd.SuggestionsFor(args[0]); len(similar) > 0 {
		next = DidYouMean(cmd.CommandPath()+" ", similar)
	}
	return &UsageError{fmt.Sprintf("%s has no command %q", cmd.CommandPath(), args[0]), next}
}

// FirstArg returns the first argument, or "" if there is none.
func FirstArg(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}
