// Package cli is the command line of servicectl, with one file per command; package session contains the commands of
// sessions. service-mcp offers a few of these commands. Commands call the daemon through ctl/internal/client and
// print through ctl/internal/term; they contain no rules about accounts, links or tools.
package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/ctl/internal/cli/session"
	"github.com/service-dev/service/ctl/internal/command"
	"github.com/service-dev/service/ctl/internal/term"
	"github.com/service-dev/service/internal/buildinfo"
	"github.com/service-dev/service/internal/problem"
)

// app defines the commands of one run.
type app struct{ *command.Program }

// Main runs one command line; args[0] is the program's name. It returns the exit code.
func Main(args []string, in io.Reader, out, errOut io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	a := &app{&command.Program{Terminal: term.New(out, errOut), Name: programName(args), In: in}}
	root := a.root()
	root.SetArgs(args[min(1, len(args)):])
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	return a.code(root.ExecuteContext(ctx))
}

// Root returns the commands of a program, servicectl or service-mcp, for its manual.
func Root(name string) *cobra.Command {
	return (&app{&command.Program{Terminal: term.New(io.Discard, io.Discard), Name: name}}).root()
}

func programName(args []string) string {
	if len(args) > 0 && strings.TrimSuffix(filepath.Base(args[0]), ".exe") == "service-mcp" {
		return "service-mcp"
	}
	return "servicectl"
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use: a.Name, Short: "Link this machine to an account and inspect the daemon",
		Long: "Links this machine to an account, and shows the state of the service's daemon.\n\n" +
			"To begin, run `servicectl agent add --all`, then `servicectl doctor`.",
		SilenceUsage: true, SilenceErrors: true, Version: buildinfo.Version,
		Args: command.OnlySubcommands,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	root.PersistentFlags().BoolVar(&a.PrintsJSON, "json", false, "print JSON")
	root.SetFlagErrorFunc(command.BadFlag)
	root.SetHelpFunc(a.showHelp)
	account := []*cobra.Command{a.login(), a.logout(), a.whoami(), a.acceptPrivacy(), a.declinePrivacy()}
	if a.Name == "service-mcp" {
		root.Long = "Without a command it forwards MCP between the coding agent that started it and the daemon.\n\n" +
			"To register it with your agents, run `servicectl agent add --all`."
		root.CompletionOptions.DisableDefaultCmd = true
		root.AddCommand(account...)
		addExamples(root, a.Name)
		return root
	}
	section(root, "begin", "To begin:", a.agent(), a.doctor(), a.demo())
	section(root, "apps", "Apps and glasses:", session.Command(a.Program), a.glasses(), a.fonts(), a.tool())
	section(root, "account", "Account:", append(account, a.account(), a.openPage(), a.usage(), a.telemetry())...)
	section(root, "machine", "This machine:", a.status(), a.daemon(), a.service(), a.plugin(), a.upgrade(),
		a.uninstall(), a.version())
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetHelpCommand(command.HelpOf(root))
	root.AddCommand(a.clientIO())
	addExamples(root, a.Name)
	a.completeFlags(root)
	command.ExplainArguments(root)
	return root
}

// section adds commands under a heading in the help.
func section(root *cobra.Command, id, title string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: id, Title: title})
	for _, cmd := range commands {
		cmd.GroupID = id
	}
	root.AddCommand(commands...)
}

// code reports an error to the user and returns the exit code.
func (a *app) code(err error) int {
	a.Report(err)
	var outcome command.Exit
	switch {
	case err == nil:
		return int(command.ExitYes)
	case errors.As(err, &outcome):
		return int(outcome)
	case errors.Is(err, context.Canceled):
		return int(command.ExitCancelled)
	}
	return int(exitOf(command.ProblemOf(err).Code))
}

// exitOf returns the exit code for an error code: 1 if the answer to the command is no, 2 if it is unknown.
func exitOf(code string) command.Exit {
	if problem.Of(code).Negative {
		return command.ExitNo
	}
	return command.ExitUnknown
}
