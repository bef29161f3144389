package cli

import (
	"cmp"
	"context"
	"errors"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/ctl/internal/agents"
	"github.com/service-dev/service/ctl/internal/client"
	"github.com/service-dev/service/ctl/internal/command"
	"github.com/service-dev/service/ctl/internal/dialer"
	"github.com/service-dev/service/ctl/internal/purge"
	"github.com/service-dev/service/ctl/internal/term"
	"github.com/service-dev/service/ctl/internal/upgrade"
	"github.com/service-dev/service/internal/problem"
)

func (a *app) uninstall() *cobra.Command {
	var purged, yes bool
	cmd := command.New("uninstall", "Undo what the service set up for you",
		"Removes service-mcp from your coding agents and the OS service, and stops the daemon. It keeps your settings and\n"+
			"your data unless you pass --purge, which also revokes this machine's link and deletes the state directory, after\n"+
			"asking you. It does not remove the programs, but explains how.\n"+
			"Exit code: 0 done, 1 not confirmed, 2 something could not be removed.",
		func(ctx context.Context) error { return a.runUninstall(ctx, purged, yes) })
	cmd.Flags().BoolVar(&purged, "purge", false, "also delete the state directory")
	yesFlag(cmd, &yes)
	return cmd
}

// runUninstall continues after a failed step, so that one problem does not leave the rest installed.
func (a *app) runUninstall(ctx context.Context, purged, yes bool) error {
	d, err := dialer.Find()
	if err != nil {
		return err
	}
	installed, err := upgrade.FindInstalled()
	if err != nil {
		return err
	}
	var state *purge.State
	if purged {
		if state, err = a.confirmPurge(ctx, d.Paths.Dir, yes); err != nil {
			return err
		}
	}
	done := term.Uninstalled{Agents: []term.UnregisteredAgent{}, RemovePrograms: installed.Remove,
		ScriptURL: installed.ScriptURL(), Programs: installed.Dir}
	a.unregisterAll(&done)
	if state != nil && state.Has["auth.json"] {
		if done.Link, err = a.endLink(ctx); err != nil {
			done.Fail("revoke the link", err)
			state = nil // auth.json is needed to try again
		}
	}
	a.removeService(ctx, d, &done)
	pid, err := a.stopOrKill(ctx)
	done.Stopped = err == nil && pid != 0
	if err != nil {
		done.Fail("stop the daemon", err)
	} else if state != nil {
		a.deleteState(ctx, *state, &done)
	}
	if ctx.Err() != nil {
		return context.Canceled
	}
	if err := a.Print(done, func() { a.UninstallReport(done) }); err != nil {
		return err
	}
	if len(done.Failed) > 0 {
		return command.ExitUnknown
	}
	return nil
}

// confirmPurge lists what will be lost and asks for confirmation. It returns the state directory to delete, or nil if
// there is none.
func (a *app) confirmPurge(ctx context.Context, dir string, yes bool) (*purge.State, error) {
	state, err := purge.Inspect(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case errors.Is(err, purge.ErrForeign):
		return nil, &problem.Error{Code: problem.CodeNotStateDirectory, Message: "refusing to delete " + dir + ": " +
			err.Error(),
			FixHint: "Check SERVICE_CONFIG_DIR. If the directory is the right one, delete it yourself."}
	case err != nil:
		return nil, err
	}
	if !a.PrintsJSON || !yes {
		a.PurgeWarning(dir, state.Has, state.Sessions, state.Others)
	}
	if yes {
		return &state, nil
	}
	if !term.CanConfirm(a.In) {
		return nil, &problem.Error{Code: problem.CodeNotConfirmed,
			Message: "this must be confirmed, and the input is not a terminal",
			FixHint: "Pass --yes."}
	}
	ok, err := a.Confirm(ctx, a.In, term.PurgeQuestion)
	if err == nil && !ok {
		err = &problem.Error{Code: problem.CodeNotConfirmed, Message: "nothing was changed",
			FixHint: "Run the command again and answer y."}
	}
	return &state, err
}

// unregisterAll removes the entries of all coding agents, including agents that are no longer installed.
func (a *app) unregisterAll(done *term.Uninstalled) {
	all, _, err := known()
	if err != nil {
		done.Fail("find the coding agents", err)
		return
	}
	for _, g := range all {
		if !g.Registered() {
			if g.Found() {
				if state, _, err := g.State(""); state == agents.StateUnreadable {
					done.Fail("look for the entry of "+g.Name, err)
				}
			}
			continue
		}
		if _, err := g.Remove(false); err != nil {
			done.Fail("remove the entry of "+g.Name, err)
			continue
		}
		done.Agents = append(done.Agents, term.UnregisteredAgent{ID: g.ID, Name: g.Name, File: g.File})
	}
}

// maxDeletions is the maximum number of times that the state directory is deleted. A running agent may start a
// new daemon in it.
const maxDeletions = 3

// deleteState deletes the state directory. It repeats the deletion if an agent starts the daemon again in the meantime.
func (a *app) deleteState(ctx context.Context, state purge.State, done *term.Uninstalled) {
	for try := 1; ; try++ {
		kept, err := state.Remove()
		var left []string
		if err == nil {
			left, err = state.Left()
		}
		if err == nil && len(left) == 0 {
			done.Purged, done.Kept = state.Dir, kept
			return
		}
		if try == maxDeletions {
			done.Fail("delete "+state.Dir, cmp.Or(err, errors.New("an agent keeps starting the daemon: close your agents")))
			return
		}
		if _, err := a.stopOrKill(ctx); err != nil {
			done.Stopped = false
			done.Fail("stop the daemon", err)
			return
		}
	}
}

// endLink revokes this machine's link and returns the outcome in words. It replaces a daemon that is too old for
// this program, and returns an error if it cannot ask a daemon of another version.
func (a *app) endLink(ctx context.Context) (string, error) {
	link := term.LinkUnknown
	for try := 1; ; try++ {
		err := a.WithClient(ctx, func(c *client.Client) error {
			r, err := c.Logout(ctx)
			switch {
			case err != nil:
				return err
			case !r.WasLinked:
				link = term.LinkNone
			case r.Revoked:
				link = term.LinkRevoked
			}
			return nil
		})
		switch {
		case errors.Is(err, client.ErrDaemonTooOld):
		case problem.CodeOf(err) == problem.CodeProtocolMismatch: // the daemon is newer
			return "", err
		default:
			return link, nil // the report mentions an unknown outcome
		}
		if try == maxReplacements {
			return "", err
		}
		if _, err := a.stopOrKill(ctx); err != nil {
			return "", err
		}
	}
}

// removeService removes the registration with the service manager, if there is one.
func (a *app) removeService(ctx context.Context, d dialer.Daemon, done *term.Uninstalled) {
	s, err := askServiced(ctx, d, "status")
	code := problem.CodeOf(err)
	if code == problem.CodeProgramMissing || code == problem.CodeNoServiceManager || err == nil &&
		s.State == "not_installed" {
		return
	}
	if err == nil {
		err = a.endManaged(ctx, d)
	}
	if err == nil {
		_, err = askServiced(ctx, d, "uninstall")
	}
	switch {
	case err == nil:
		done.Service = true
	case problem.CodeOf(err) != problem.CodeServiceNotInstalled:
		done.Fail("remove the OS service", err)
	}
}
