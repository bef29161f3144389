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
	"github.com/service-dev/service/ctl/internal/reach"
	"github.com/service-dev/service/ctl/internal/term"
)

func (a *app) service() *cobra.Command {
	cmd := &cobra.Command{
		Use: "service", Short: "Keep the daemon with the system's service manager (optional)", Args: cobra.NoArgs, RunE: help,
		Long: "Registers the daemon with systemd (your own, with sockets that start it), launchd or the Windows Task Scheduler.\n" +
			"Without it any client starts the daemon on demand, so nothing needs this.",
	}
	for _, action := range []struct{ word, short string }{
		{"install", "Register the daemon for your logins, and start it now"},
		{"uninstall", "Stop the daemon and take it out again"},
		{"start", "Start the registered daemon; one that a client started hands over"},
		{"stop", "Stop the registered daemon until the next login"},
		{"status", "Show what the service manager knows"},
	} {
		sub := &cobra.Command{
			Use: action.word, Short: action.short, Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return a.runService(cmd.Context(), action.word) },
		}
		if action.word == "status" {
			sub.Long = "Shows what the service manager knows.\nExit code: 0 installed and up, 1 not installed, stopped or failed, 2 cannot tell."
		}
		cmd.AddCommand(sub)
	}
	return cmd
}

// codeNoService is serviced's word for a service that is not installed: a clear no.
const codeNoService = "service_not_installed"

// serviceView is what --json shows: the service manager's word and the daemon's own.
type serviceView struct {
	term.Service
	// Daemon is what answers at the sockets; nil when nobody does.
	Daemon *term.ServedBy `json:"daemon"`
}

func (a *app) runService(ctx context.Context, action string) error {
	d, err := reach.Find()
	if err != nil {
		return err
	}
	if action == "stop" || action == "uninstall" {
		if err := a.endTask(ctx, d); err != nil {
			return err
		}
	}
	s, err := askServiced(ctx, d, action)
	if err != nil {
		return err
	}
	view := serviceView{Service: s}
	if action == "install" || action == "start" {
		view.Daemon, err = a.meet(ctx, d, s)
	} else if s.State == "running" || s.State == "unknown" {
		view.Daemon, err = a.served(ctx)
	}
	if err != nil {
		return err
	}
	if by := view.Daemon; by != nil && by.Managed {
		view.State, view.PID = "running", int(by.PID)
	}
	if a.json {
		if err := a.JSON(view); err != nil {
			return err
		}
	} else {
		a.ServiceTold(action, view.Service, view.Daemon)
	}
	if action == "status" {
		return serviceExit(view)
	}
	return nil
}

// serviceExit is the exit code of `service status`.
func serviceExit(v serviceView) error {
	switch v.State {
	case "running", "listening":
		return nil
	case "unknown":
		return exit(exitUnknown)
	}
	return exit(exitNo)
}

// askServiced has serviced do the work: what the service manager starts is that very program.
func askServiced(ctx context.Context, d reach.Daemon, action string) (term.Service, error) {
	if _, err := os.Stat(d.Program); err != nil {
		return term.Service{}, &client.Error{Code: "program_missing", Message: d.Program + " is not there", FixHint: "install it beside this program"}
	}
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, d.Program, "service", action)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if ctx.Err() != nil {
		return term.Service{}, context.Canceled
	}
	var answer struct {
		Report *term.Service `json:"report"`
		Error  *client.Error `json:"error"`
	}
	_ = json.Unmarshal(out.Bytes(), &answer) // what it cannot read stays empty
	switch {
	case answer.Error != nil:
		return term.Service{}, answer.Error
	case answer.Report != nil:
		return *answer.Report, nil
	case err == nil:
		err = errors.New("it said nothing")
	}
	return term.Service{}, fmt.Errorf("asking %s: %w: %s", d.Program, err, bytes.TrimSpace(errs.Bytes()))
}

// handoverTime bounds the wait for the service's daemon; one that a client had started finishes its calls first.
const handoverTime = 40 * time.Second

// meet connects to the daemon that the service manager has just begun to keep: with systemd the connection itself starts
// it. Where the sockets are the daemon's own, one that a client had started is asked to go.
func (a *app) meet(ctx context.Context, d reach.Daemon, s term.Service) (*term.ServedBy, error) {
	wait, cancel := context.WithTimeout(ctx, handoverTime)
	defer cancel()
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		by, err := a.served(wait)
		switch {
		case err == nil && by != nil && by.Managed:
			return by, nil
		case err == nil && by != nil:
			err = a.replace(wait)
		}
		if ctx.Err() != nil {
			return nil, context.Canceled
		}
		if wait.Err() != nil {
			return nil, &client.Error{
				Code: "service_not_up", Retryable: true, Message: fmt.Sprintf("%s keeps %s, but its daemon does not answer within %s", s.System, s.Name, handoverTime),
				FixHint: "look at `servicectl service status` and " + d.LogFile(),
			}
		}
		var refused *client.Error
		if err != nil && errors.As(err, &refused) && !refused.Retryable {
			return nil, err
		}
		select {
		case <-wait.Done():
		case <-time.After(pause):
		}
	}
}

// served asks whoever listens; nil when nobody does.
func (a *app) served(ctx context.Context) (*term.ServedBy, error) {
	c, err := client.Open(ctx, client.Options{Program: a.name, Running: true})
	if errors.Is(err, reach.ErrNotRunning) {
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
	return &term.ServedBy{PID: s.GetPid(), Version: s.GetVersion(), Managed: s.GetManaged(), SocketActivated: s.GetSocketActivated()}, nil
}

// replace asks a daemon to finish.
func (a *app) replace(ctx context.Context) error {
	c, err := client.Open(ctx, client.Options{Program: a.name, Running: true, Lean: true})
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.Stop(ctx)
	return err
}

// endTask lets the daemon finish where the service manager would only kill it.
func (a *app) endTask(ctx context.Context, d reach.Daemon) error {
	if runtime.GOOS != "windows" {
		return nil
	}
	by, err := a.served(ctx)
	if err != nil || by == nil || !by.Managed {
		return nil // the service manager will do
	}
	if err := a.replace(ctx); err != nil {
		return nil
	}
	return awaitGone(ctx, d, by.PID)
}
