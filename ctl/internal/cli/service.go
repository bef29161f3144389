package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/ctl/internal/client"
	"github.com/service-dev/service/ctl/internal/command"
	"github.com/service-dev/service/ctl/internal/dialer"
	"github.com/service-dev/service/ctl/internal/term"
	"github.com/service-dev/service/internal/problem"
)

func (a *app) service() *cobra.Command {
	cmd := command.Group("service", "Run the daemon under the system's service manager (optional)",
		"Registers the daemon with your user's systemd (socket-activated), launchd or the Windows Task Scheduler.\n"+
			"This is optional: without it, clients start the daemon on demand.")
	for _, action := range []struct{ word, short, long string }{
		{"install", "Register the daemon to start at login, and start it now", ""},
		{"uninstall", "Stop the daemon and remove the registration", ""},
		{"start", "Start the registered daemon; it replaces a daemon that a client started", ""},
		{"stop", "Stop the registered daemon until the next login", ""},
		{"status", "Show the state known to the service manager", "Shows the state known to the service manager.\n" +
			"Exit code: 0 installed and up, 1 not installed, stopped or failed, 2 unknown."},
	} {
		cmd.AddCommand(command.New(action.word, action.short, action.long, func(ctx context.Context) error {
			return a.runService(ctx, action.word)
		}))
	}
	return cmd
}

// serviceView is the output of --json. It combines the reports of the service manager and the daemon.
type serviceView struct {
	term.Service
	// Daemon is the daemon that responds on the sockets, or nil.
	Daemon *term.ServedBy `json:"daemon"`
}

func (a *app) runService(ctx context.Context, action string) error {
	d, err := dialer.Find()
	if err != nil {
		return err
	}
	if action == "stop" || action == "uninstall" {
		if err := a.endManaged(ctx, d); err != nil {
			return err
		}
	}
	s, err := askServiced(ctx, d, action)
	if err != nil {
		return err
	}
	view := serviceView{Service: s}
	if action == "install" || action == "start" {
		view.Daemon, err = a.awaitManaged(ctx, d, s)
	} else if s.State == "running" || s.State == "unknown" {
		view.Daemon, err = a.askServed(ctx)
	}
	if err != nil {
		return err
	}
	if by := view.Daemon; by != nil && by.Managed {
		view.State, view.PID = "running", by.PID
	}
	err = a.Print(view, func() { a.ServiceReport(action, view.Service, view.Daemon) })
	if err == nil && action == "status" {
		return serviceExit(view)
	}
	return err
}

// serviceExit returns the exit code of `service status`.
func serviceExit(v serviceView) error {
	switch v.State {
	case "running", "listening":
		return nil
	case "unknown":
		return command.ExitUnknown
	}
	return command.ExitNo
}

// Time limits for an action of serviced, which allows 90 s for each command of the service manager. Installing takes
// several commands.
const (
	statusWait = 30 * time.Second
	actionWait = 10 * time.Minute
)

// askServiced makes serviced, the program that the service manager starts, perform the action.
func askServiced(ctx context.Context, d dialer.Daemon, action string) (term.Service, error) {
	if _, err := os.Stat(d.Program); err != nil {
		return term.Service{}, d.Missing()
	}
	var out, errs bytes.Buffer
	limit := actionWait
	if action == "status" {
		limit = statusWait
	}
	caller := ctx
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, d.Program, "service", action)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	switch {
	case caller.Err() != nil:
		return term.Service{}, context.Canceled
	case ctx.Err() != nil:
		return term.Service{}, fmt.Errorf("%s did not respond within %s", d.Program, limit)
	}
	var answer struct {
		Report *term.Service  `json:"report"`
		Error  *problem.Error `json:"error"`
	}
	_ = json.Unmarshal(out.Bytes(), &answer) // on failure the result stays empty
	switch {
	case answer.Error != nil:
		return term.Service{}, answer.Error
	case answer.Report != nil:
		return *answer.Report, nil
	case err == nil:
		err = errors.New("no output")
	}
	if said := bytes.TrimSpace(errs.Bytes()); len(said) > 0 {
		err = fmt.Errorf("%w: %s", err, said)
	}
	return term.Service{}, fmt.Errorf("run %s: %w", d.Program, err)
}

// handoverTime is the maximum time to wait for the service's daemon. A daemon that a client started finishes its calls
// first.
const handoverTime = 40 * time.Second

// maxReplacements is the maximum number of times that a daemon is stopped because it is too old for this program.
// A running agent may start it again.
const maxReplacements = 3

// awaitManaged connects to the daemon that the service manager has just started; with systemd the connection itself
// starts the daemon. If it reaches a daemon that a client started instead, or one that is too old for this
// program, it stops that daemon.
func (a *app) awaitManaged(ctx context.Context, d dialer.Daemon, s term.Service) (*term.ServedBy, error) {
	wait, cancel := context.WithTimeout(ctx, handoverTime)
	defer cancel()
	stopped := 0
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		by, err := a.askServed(wait)
		switch {
		case err == nil && by != nil && by.Managed:
			return by, nil
		case err == nil && by != nil:
			err = a.replace(wait)
		case errors.Is(err, client.ErrDaemonTooOld) && stopped < maxReplacements:
			stopped++
			_, err = a.stopOrKill(wait)
		}
		if ctx.Err() != nil {
			return nil, context.Canceled
		}
		if wait.Err() != nil {
			return nil, &problem.Error{
				Code: "service_not_up", Retryable: true, Message: fmt.Sprintf(
					"%s manages %s, but its daemon does not respond within %s", s.System, s.Name, handoverTime),
				FixHint: "Run `servicectl service status` and read " + d.LogFile() + ".",
			}
		}
		// While one daemon replaces the other, the sockets may be elsewhere.
		if p := problem.From(err); p != nil && !p.Retryable && p.Code != problem.CodeDaemonElsewhere {
			return nil, err
		}
		select {
		case <-wait.Done():
		case <-time.After(pause):
		}
	}
}

// askServed returns the running daemon, or nil if none is running.
func (a *app) askServed(ctx context.Context) (*term.ServedBy, error) {
	c, err := client.Open(ctx, client.Options{Program: a.Name, Running: true})
	if errors.Is(err, dialer.ErrNotRunning) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer c.Close()
	s, err := c.Status(ctx)
	if err != nil {
		return nil, err
	}
	return &term.ServedBy{PID: s.PID, Version: s.Version, Managed: s.Managed,
		SocketActivated: s.SocketActivated}, nil
}

// replace asks a running daemon to stop, so that the service manager's daemon can replace it.
func (a *app) replace(ctx context.Context) error {
	c, err := client.Open(ctx, client.Options{Program: a.Name, Running: true, AnyProtocol: true})
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.Stop(ctx)
	return err
}

// endManaged lets the daemon finish its work first. On Windows the service manager would only kill it.
func (a *app) endManaged(ctx context.Context, d dialer.Daemon) error {
	if runtime.GOOS != "windows" {
		return nil
	}
	by, err := a.askServed(ctx)
	if err != nil || by == nil || !by.Managed {
		return nil // no daemon is known to run under a service manager
	}
	if err := a.replace(ctx); err != nil {
		return nil
	}
	return awaitGone(ctx, d, by.PID)
}
