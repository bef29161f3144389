package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/service-dev/service/ctl/internal/client"
)

// command returns a command without arguments. long may be empty.
func command(use, short, long string, run func(context.Context) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Long: long, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context()) },
	}
}

// group returns a command that only has subcommands.
func group(use, short, long string, subcommands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long, Args: onlyCommands,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(subcommands...)
	cmd.AddCommand(helpOf(cmd))
	return cmd
}

// helpOf returns a group's "help [COMMAND]" command, which prints the same text as --help.
func helpOf(group *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", Short: "Explain a command", Hidden: true, Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			about, _, err := group.Find(args)
			if err != nil || len(args) > 0 && about == group {
				return onlyCommands(group, args)
			}
			return about.Help()
		},
	}
}

// usageError is a mistake in the command line, with the next step.
type usageError struct{ message, next string }

func (e *usageError) Error() string { return e.message }

// onlyCommands rejects an argument that is not a subcommand, and suggests subcommands with a similar name.
func onlyCommands(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = 2
	next := fmt.Sprintf("run `%s --help` to see the commands", cmd.CommandPath())
	if similar := cmd.SuggestionsFor(args[0]); len(similar) > 0 {
		next = didYouMean(cmd.CommandPath()+" ", similar)
	}
	return &usageError{fmt.Sprintf("%s has no command %q", cmd.CommandPath(), args[0]), next}
}

// explainArguments adds the next step to argument errors of a command and its subcommands.
func explainArguments(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			err := check(cmd, args)
			if explained := (*usageError)(nil); err == nil || errors.As(err, &explained) {
				return err
			}
			return &usageError{err.Error(), fmt.Sprintf("run `%s --help` to see the arguments", cmd.CommandPath())}
		}
	}
	for _, child := range cmd.Commands() {
		explainArguments(child)
	}
}

// badFlag reports an unknown or malformed flag. It suggests flags with a similar name, or the help that lists the
// flags.
func badFlag(cmd *cobra.Command, err error) error {
	if name, ok := strings.CutPrefix(err.Error(), "unknown flag: --"); ok {
		var known []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
		if similar := similarTo(name, known); len(similar) > 0 {
			return &usageError{err.Error(), didYouMean("--", similar)}
		}
	}
	return &usageError{err.Error(), fmt.Sprintf("run `%s --help` to see the flags", cmd.CommandPath())}
}

// didYouMean formats a suggestion of names, each preceded by prefix.
func didYouMean(prefix string, names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = "`" + prefix + name + "`"
	}
	return "did you mean " + strings.Join(quoted, " or ") + "?"
}

// maxTypos is the maximum edit distance at which a misspelled name is still recognised.
const maxTypos = 2

// similarTo returns the known names that the user may have meant.
func similarTo(name string, known []string) []string {
	var similar []string
	for _, k := range known {
		if typos(strings.ToLower(name), strings.ToLower(k)) <= min(maxTypos, len(name)/2) {
			similar = append(similar, k)
		}
	}
	return similar
}

// typos returns the edit distance of two words.
func typos(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// open connects to the daemon and starts it if necessary. The caller must close the client with a.close.
func (a *app) open(ctx context.Context) (*client.Client, error) {
	return client.Open(ctx, client.Options{Program: a.name, PrintsNotice: true})
}

// close closes a client and prints the notice that the client received, if any.
func (a *app) close(c *client.Client) {
	c.Close()
	a.Notice(c.Notice())
}

// connected runs act with a connection to the daemon, which it starts if necessary.
func (a *app) connected(ctx context.Context, act func(*client.Client) error) error {
	c, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer a.close(c)
	return act(c)
}

// connectedRun returns the RunE of a command that takes arguments and needs the daemon.
func (a *app) connectedRun(
	act func(context.Context, *client.Client, []string) error,
) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		return a.connected(cmd.Context(), func(c *client.Client) error { return act(cmd.Context(), c, args) })
	}
}

// print writes the result of a command: object as JSON with --json, otherwise the text that say prints.
func (a *app) print(object any, say func()) error {
	if a.json {
		return a.JSON(object)
	}
	say()
	return nil
}

// query returns a command that makes one request to the daemon and prints the response.
func query[T any](a *app, use, short, long string, ask func(*client.Client, context.Context) (T, error),
	object func(T) any, say func(T)) *cobra.Command {
	return command(use, short, long, func(ctx context.Context) error {
		return a.connected(ctx, func(c *client.Client) error {
			answer, err := ask(c, ctx)
			if err != nil {
				return err
			}
			return a.print(object(answer), func() { say(answer) })
		})
	})
}
