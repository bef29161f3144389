// Package cli is the command line of servicectl, with one file per command; service-mcp offers a few of these
// commands. Commands call the daemon through ctl/internal/client and print through ctl/internal/term; they contain no
// rules about accounts, links or tools.
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

	"github.com/service-dev/service/ctl/internal/client"
	"github.com/service-dev/service/ctl/internal/dialer"
	"github.com/service-dev/service/ctl/internal/term"
	"github.com/service-dev/service/glasses/driver"
	"github.com/service-dev/service/glasses/render/fonts"
	"github.com/service-dev/service/internal/buildinfo"
)

// Exit codes of the programs.
const (
	exitYes       = 0
	exitNo        = 1
	exitUnknown   = 2
	exitCancelled = 130
)

// exit is an exit code returned as an error. Its cause was already reported.
type exit int

func (exit) Error() string { return "told already" }

// app holds the state that the commands of one run share.
type app struct {
	*term.Terminal
	name string // servicectl or service-mcp
	in   io.Reader
	json bool
}

// Main runs one command line; args[0] is the program's name. It returns the exit code.
func Main(args []string, in io.Reader, out, errOut io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	a := &app{Terminal: term.New(out, errOut), name: programName(args), in: in}
	root := a.root()
	root.SetArgs(args[min(1, len(args)):])
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	return a.code(root.ExecuteContext(ctx))
}

// Root returns the commands of a program, servicectl or service-mcp, for its manual.
func Root(name string) *cobra.Command {
	return (&app{Terminal: term.New(io.Discard, io.Discard), name: name}).root()
}

func programName(args []string) string {
	if len(args) > 0 && strings.TrimSuffix(filepath.Base(args[0]), ".exe") == "service-mcp" {
		return "service-mcp"
	}
	return "servicectl"
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use: a.name, Short: "Link this machine to an account and inspect the daemon",
		Long: "Links this machine to an account, and shows what the service's daemon does.\n\n" +
			"To begin: `servicectl agent add --all`, then `servicectl doctor`.",
		SilenceUsage: true, SilenceErrors: true, Version: buildinfo.Version,
		Args: onlyCommands,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	root.PersistentFlags().BoolVar(&a.json, "json", false, "print JSON")
	root.SetFlagErrorFunc(badFlag)
	root.SetHelpFunc(a.showHelp)
	account := []*cobra.Command{a.login(), a.logout(), a.whoami(), a.acceptPrivacy(), a.declinePrivacy()}
	if a.name == "service-mcp" {
		root.Long = "Without a command it forwards MCP between the coding agent that started it and the daemon.\n\n" +
			"To register it with your agents: `servicectl agent add --all`."
		root.CompletionOptions.DisableDefaultCmd = true
		root.AddCommand(account...)
		addExamples(root, a.name)
		return root
	}
	section(root, "begin", "To begin:", a.agent(), a.doctor(), a.demo())
	section(root, "apps", "Apps and glasses:", a.session(), a.glasses(), a.fonts(), a.tool())
	section(root, "account", "Account:", append(account, a.account(), a.openPage(), a.usage(), a.telemetry())...)
	section(root, "machine", "This machine:", a.status(), a.daemon(), a.service(), a.plugin(), a.upgrade(), a.uninstall(), a.version())
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetHelpCommand(helpOf(root))
	root.AddCommand(a.clientIO())
	addExamples(root, a.name)
	a.completeFlags(root)
	explainArguments(root)
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
	var outcome exit
	switch {
	case err == nil:
		return exitYes
	case errors.As(err, &outcome):
		return int(outcome)
	case errors.Is(err, context.Canceled):
		a.Cancelled()
		return exitCancelled
	}
	p := problemOf(err)
	if a.json {
		_ = a.JSON(map[string]term.Problem{"error": p})
	} else {
		a.Problem(a.name, p)
	}
	return exitOf(p.Code)
}

// exitOf returns the exit code for an error code: 1 if the answer is negative, 2 if it cannot be determined.
func exitOf(code string) int {
	switch code {
	case "auth_required", "link_conflict", "device_code_denied", "device_code_expired", "unknown_device_code",
		"auth_timeout", "permission_denied", codeNoAgent, codeNoPage, codeNoService, fonts.CodeDamaged, fonts.CodeTooLarge,
		fonts.CodeUnsupported, "font_duplicate", "font_too_many", "font_not_found", codeNotConfirmed,
		codeNoAccount, codeBadPassword, codeNotEmbedded, codeSuspended, "adapter_not_usable", "adapter_duplicate", "adapter_too_many", codeAdapterNotFound,
		driver.ProblemNoBluetooth, driver.ProblemRadioOff, driver.ProblemNoPermission:
		return exitNo
	}
	return exitUnknown
}

// problemOf converts any error to a Problem that includes the next step.
func problemOf(err error) term.Problem {
	var refused *client.Error
	if errors.As(err, &refused) {
		return term.Problem(*refused)
	}
	if p, ok := dialer.ProblemOf(err); ok {
		return term.Problem(p)
	}
	if errors.Is(err, dialer.ErrNotRunning) {
		return term.Problem{
			Code: "daemon_not_running", Message: err.Error(), Retryable: true,
			FixHint: "any other command starts it; or run `servicectl daemon run`",
		}
	}
	if wrong := (*usageError)(nil); errors.As(err, &wrong) {
		return term.Problem{Code: "usage", Message: wrong.message, FixHint: wrong.next}
	}
	return term.Problem{Code: "usage", Message: err.Error(), FixHint: "run the command with --help to see its usage"}
}
