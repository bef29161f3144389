package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/ctl/internal/client"
	"github.com/service-dev/service/ctl/internal/command"
	"github.com/service-dev/service/ctl/internal/dialer"
	"github.com/service-dev/service/ctl/internal/term"
	"github.com/service-dev/service/internal/buildinfo"
	"github.com/service-dev/service/internal/programpath"
)

type check = client.Check

func (a *app) doctor() *cobra.Command {
	return command.New("doctor", "Check everything and show how to fix what fails",
		"Exit code: 0 no check failed, 1 a check failed.", a.runDoctor)
}

func (a *app) runDoctor(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	checks := programChecks(ctx)
	if checks[0].State == "ok" { // serviced runs, and can ask the service manager
		checks = append(checks, serviceCheck(ctx))
	}
	checks = append(checks, a.daemonChecks(ctx)...)
	failed := false
	rows := make([]term.Check, 0, len(checks))
	for _, c := range checks {
		failed = failed || c.State == "fail"
		rows = append(rows, term.Check(c))
	}
	err := a.Print(map[string]any{"ok": !failed, "checks": checks}, func() { a.Checks(rows) })
	if err == nil && failed {
		return command.ExitNo
	}
	return err
}

// programChecks checks that the other programs, serviced first, are in this program's folder and can be executed.
func programChecks(ctx context.Context) []check {
	var out []check
	for _, name := range []string{"serviced", "service-mcp"} {
		path, err := programpath.Beside(name)
		c := check{Name: "program " + name, State: "ok", Detail: path}
		if err == nil {
			err = tryProgram(ctx, name, path, programTimeout)
		}
		if err != nil {
			c.State, c.Detail = "fail", err.Error()
			c.Fix = "Install the service again; `servicectl upgrade` says how this copy was installed."
		}
		out = append(out, c)
	}
	return out
}

// programTimeout is the maximum time for a program to print its version.
const programTimeout = 10 * time.Second

// tryProgram runs a program and returns an error unless it prints its version.
func tryProgram(ctx context.Context, name, path string, limit time.Duration) error {
	if _, err := os.Stat(path); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.WaitDelay = time.Second // a child may keep the output open
	out, err := cmd.Output()
	var failed *fs.PathError
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%s did not print its version within %s", path, limit)
	case errors.As(err, &failed): // the error already contains the path
		return fmt.Errorf("%s does not run: %w", path, failed.Err)
	case err != nil:
		return fmt.Errorf("%s does not run: %w", path, err)
	}
	if !strings.HasPrefix(string(out), name+" ") {
		return fmt.Errorf("%s does not print its version", path)
	}
	return nil
}

// serviceCheck reports the state of the daemon in the service manager, if the service is installed.
func serviceCheck(ctx context.Context) check {
	d, err := dialer.Find()
	if err != nil {
		return failure("service", err)
	}
	s, err := askServiced(ctx, d, "status")
	if err != nil {
		c := failure("service", err)
		c.State = "warn" // not a failure: clients start the daemon without the service
		return c
	}
	c := check{Name: "service", State: "ok"}
	c.Detail, c.Fix = term.ServiceHealth(s)
	switch {
	case s.State == "failed" || s.ProgramMissing:
		c.State = "fail"
	case c.Fix != "":
		c.State = "warn"
	}
	return c
}

func (a *app) daemonChecks(ctx context.Context) []check {
	c, s, err := a.askStatus(ctx)
	if err != nil {
		return []check{failure("daemon", err)}
	}
	defer c.Close()
	out := []check{
		{Name: "daemon", State: "ok", Detail: fmt.Sprintf("answers on %s (pid %d)", s.ControlSocket, s.PID)},
		versionCheck(s),
	}
	list, err := c.Doctor(ctx)
	if err != nil {
		return append(out, failure("daemon's checks", err))
	}
	return append(out, checksOf(list, s.Consent)...)
}

// askStatus connects, starting the daemon if necessary, and requests its status within answerWait.
func (a *app) askStatus(ctx context.Context) (*client.Client, *client.Status, error) {
	c, err := client.Open(ctx, client.Options{Program: a.Name, AnyProtocol: true})
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerWait)
	defer cancel()
	s, err := c.Status(ctx)
	if err != nil {
		c.Close()
		return nil, nil, namedSilent(err, c.Daemon)
	}
	return c, s, nil
}

func failure(name string, err error) check {
	p := command.ProblemOf(err)
	fix := p.FixHint
	// An unknown error gets code "usage" and a hint to run doctor, which is this command.
	if p.Code == "usage" || strings.Contains(fix, "servicectl doctor") {
		fix = "See the other checks."
	}
	return check{Name: name, State: "fail", Detail: p.Message, Fix: fix}
}

// versionCheck compares the versions of the daemon and this program.
func versionCheck(s *client.Status) check {
	c := check{Name: "versions", State: "ok", Detail: fmt.Sprintf("daemon and program are %s, protocol %s",
		s.Version, protocols(s.ProtocolMin, s.ProtocolMax))}
	if s.Version != buildinfo.Version {
		c.Detail = fmt.Sprintf("the daemon is %s, this program %s", s.Version, buildinfo.Version)
	}
	reportedByDaemon := s.Replaced && understood(s)
	if need := versionNeed(s); need != nil && !reportedByDaemon {
		c.State, c.Detail, c.Fix = "warn", need.What, need.Next
		if !understood(s) {
			c.State = "fail"
		}
	}
	return c
}

// checksOf converts the daemon's checks. Like status, it describes how the telemetry consent applies in this shell.
func checksOf(list []client.Check, consent client.Consent) []check {
	var out []check
	for _, c := range list {
		detail := c.Detail
		if c.Name == "consent" && c.State == "ok" {
			where, why := term.Uploading(consent.UploadAllowed, consent.DecidedBy)
			detail = consent.State + "; " + where.Text + why
		}
		c.Detail = detail
		out = append(out, c)
	}
	return out
}
