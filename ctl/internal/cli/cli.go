// Package cli is the person's command line: one file for each command of servicectl, of which service-mcp shows a
// few. A command asks the daemon through ctl/internal/client and speaks through ctl/internal/term; it holds no
// rules of its own about accounts, links or tools.
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
	"github.com/service-dev/service/ctl/internal/reach"
	"github.com/service-dev/service/ctl/internal/term"
	"github.com/service-dev/service/proto/buildinfo"
)

// Exit codes.
const (
	exitYes       = 0
	exitNo        = 1
	exitUnknown   = 2
	exitCancelled = 130
)

// exit is an outcome that was already told.
type exit int

func (exit) Error() string { return "told already" }

// app is what the commands of one run share.
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

func programName(args []string) string {
	if len(args) > 0 && strings.TrimSuffix(filepath.Base(args[0]), ".exe") == "service-mcp" {
		return "service-mcp"
	}
	return "servicectl"
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use: a.name, Short: "Link this machine, and see what the service's daemon does",
		SilenceUsage: true, SilenceErrors: true, Version: buildinfo.Version,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	root.PersistentFlags().BoolVar(&a.json, "json", false, "print JSON")
	root.AddCommand(a.login(), a.logout(), a.whoami(), a.acceptPrivacy(), a.declinePrivacy())
	if a.name == "service-mcp" {
		root.Short = "Carry MCP between a coding agent and the daemon (without a command), or link this machine"
		root.CompletionOptions.DisableDefaultCmd = true
		return root
	}
	root.AddCommand(a.status(), a.doctor(), a.tool(), a.daemon(), a.service(), a.session(), a.plugin(), a.agent(), a.version(), a.demo(), a.telemetry(), a.clientIO())
	return root
}

// code tells an error and chooses the exit code.
func (a *app) code(err error) int {
	var told exit
	switch {
	case err == nil:
		return exitYes
	case errors.As(err, &told):
		return int(told)
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

// exitOf tells a clear no from what could not be found out.
func exitOf(code string) int {
	switch code {
	case "auth_required", "link_conflict", "device_code_denied", "device_code_expired", "unknown_device_code", "auth_timeout", "permission_denied", codeNoAgent, codeNoService:
		return exitNo
	}
	return exitUnknown
}

// problemOf puts any error into the words of every room, with the next step.
func problemOf(err error) term.Problem {
	var refused *client.Error
	var sandbox *reach.SandboxError
	var unsafe *reach.UnsafeError
	var start *reach.StartError
	switch {
	case errors.As(err, &refused):
		return term.Problem{Code: refused.Code, Message: refused.Message, Retryable: refused.Retryable, FixHint: refused.FixHint}
	case errors.As(err, &sandbox):
		return term.Problem{Code: "sandbox_blocked", Message: sandbox.Error(), FixHint: sandbox.Setting()}
	case errors.As(err, &unsafe):
		return term.Problem{Code: "unsafe_directory", Message: unsafe.Error(), FixHint: unsafe.Fix}
	case errors.As(err, &start):
		p := term.Problem{Code: "daemon_unavailable", Message: start.Error(), Retryable: true, FixHint: "run `servicectl doctor`"}
		if start.Log != "" {
			p.FixHint = "look into " + start.Log
		}
		return p
	case errors.Is(err, reach.ErrNotRunning):
		return term.Problem{Code: "daemon_not_running", Message: err.Error(), Retryable: true, FixHint: "any other command starts it; or run `servicectl daemon run`"}
	}
	return term.Problem{Code: "usage", Message: err.Error(), FixHint: "add --help to see how it is used"}
}

// open connects to the daemon, starting it if need be.
func (a *app) open(ctx context.Context) (*client.Client, error) {
	return client.Open(ctx, client.Options{Program: a.name})
}
