package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/ctl/internal/client"
	"github.com/service-dev/service/ctl/internal/reach"
	"github.com/service-dev/service/ctl/internal/term"
)

func (a *app) daemon() *cobra.Command {
	cmd := &cobra.Command{Use: "daemon", Short: "Run, stop, restart or listen to the daemon", Args: cobra.NoArgs, RunE: help}
	var follow bool
	var lines int
	logs := &cobra.Command{
		Use: "logs", Short: "Print the daemon's log", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.logs(cmd.Context(), lines, follow) },
	}
	logs.Flags().BoolVarP(&follow, "follow", "f", false, "go on until Ctrl-C")
	logs.Flags().IntVarP(&lines, "lines", "n", 200, "how many of the last lines")
	cmd.AddCommand(logs,
		&cobra.Command{
			Use: "run", Short: "Run the daemon in the foreground", Args: cobra.NoArgs,
			RunE: func(*cobra.Command, []string) error { return runDaemon() },
		},
		&cobra.Command{
			Use: "stop", Short: "Ask the daemon to finish and exit", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return a.stopDaemon(cmd.Context()) },
		},
		&cobra.Command{
			Use: "restart", Short: "Stop the daemon and start the one beside this program", Args: cobra.NoArgs,
			Long: "Connected agents go on with the new daemon: their open calls are answered with one clear error, nothing is done twice.",
			RunE: func(cmd *cobra.Command, _ []string) error { return a.restartDaemon(cmd.Context()) },
		})
	return cmd
}

// runDaemon becomes serviced.
func runDaemon() error {
	path, err := reach.Beside("serviced")
	if err != nil {
		return err
	}
	return reach.Exec(path, []string{path, "run"})
}

// stopDaemon asks and waits until it is gone.
func (a *app) stopDaemon(ctx context.Context) error {
	pid, err := a.endDaemon(ctx)
	if err != nil {
		return err
	}
	return a.stopped(pid)
}

// endDaemon ends the daemon and gives its pid; 0 when none ran. One that cannot be asked, or does not do what it was
// asked, is ended by force.
func (a *app) endDaemon(ctx context.Context) (int64, error) {
	d, err := reach.Find()
	if err != nil {
		return 0, err
	}
	pid, err := askToEnd(ctx, d, a.name)
	var refused *client.Error
	if err == nil || !errors.As(err, &refused) || refused.Code != client.CodeNoAnswer && refused.Code != codeUnavailable {
		return pid, err
	}
	if pid = int64(d.PID()); pid == 0 {
		return 0, err
	}
	if err := forceEnd(ctx, d, int(pid)); err != nil {
		return 0, err
	}
	a.Remark("the daemon (pid %d) did not answer: its process was ended", pid)
	return pid, nil
}

// askToEnd asks the daemon to drain and exit, and waits until it has. One that ends before it answers, because it was
// killed or asked by another program, has ended just as well.
func askToEnd(ctx context.Context, d reach.Daemon, program string) (int64, error) {
	c, err := client.Open(ctx, client.Options{Program: program, Running: true, Lean: true})
	if errors.Is(err, reach.ErrNotRunning) {
		return 0, unreachable(ctx, patience)
	}
	if err != nil {
		return 0, err
	}
	defer c.Close()
	running := int64(d.PID())
	asking, cancel := context.WithTimeout(ctx, reach.AnswerTimeout)
	defer cancel()
	pid, err := c.Stop(asking)
	var refused *client.Error
	if errors.As(err, &refused) && refused.Code == client.CodeGone {
		pid, err = running, nil
	}
	if err != nil {
		return 0, err
	}
	return pid, awaitGone(ctx, d, pid)
}

// forceWait is how long a process has after each signal.
const forceWait = 5 * time.Second

// forceEnd ends the process of a daemon that does not answer, once it is certain that it is the one which holds the
// directory.
func forceEnd(ctx context.Context, d reach.Daemon, pid int) error {
	process, err := os.FindProcess(pid)
	if err != nil {
		return fmt.Errorf("finding process %d: %w", pid, err)
	}
	defer func() { _ = process.Release() }()
	if !holds(d, pid) { // checked after the process was taken hold of: its number cannot pass to another any more
		return &client.Error{
			Code: codeUnavailable, Message: fmt.Sprintf("process %d is not known to be the daemon that holds %s", pid, d.Paths.Dir),
			FixHint: "End the serviced process of this user yourself, then run the command again.",
		}
	}
	for _, end := range []func(*os.Process) error{askProcess, (*os.Process).Kill} {
		if err := end(process); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("ending process %d: %w", pid, err)
		}
		if gone, err := ends(ctx, d, int64(pid), forceWait); gone || err != nil {
			return err
		}
	}
	return fmt.Errorf("ending process %d: it still runs", pid)
}

// restartDaemon stops the daemon, if one runs, and starts the program that is installed now. An agent that reconnects
// may have started it already.
func (a *app) restartDaemon(ctx context.Context) error {
	old, err := a.endDaemon(ctx)
	if err != nil {
		return err
	}
	c, s, err := a.askStatus(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if a.json {
		return a.JSON(map[string]any{"stoppedPid": old, "pid": s.GetPid(), "version": s.GetVersion()})
	}
	a.Say("The daemon runs anew: version %s, pid %d.", s.GetVersion(), s.GetPid())
	return nil
}

// codeUnavailable is the code of a daemon that cannot be reached.
const codeUnavailable = "daemon_unavailable"

// patience is how long a daemon that lost its sockets has to notice and end.
const patience = 5 * time.Second

// unreachable tells a daemon that nobody can dial (its sockets were deleted, or it is ending) from none at all.
func unreachable(ctx context.Context, patience time.Duration) error {
	d, err := reach.Find()
	if err != nil {
		return err
	}
	pid := int64(d.PID())
	if gone, err := ends(ctx, d, pid, patience); gone || err != nil {
		return err
	}
	return &client.Error{
		Code: codeUnavailable, Retryable: true,
		Message: fmt.Sprintf("the daemon (pid %d) cannot be reached, but it still holds %s: it is ending, or must be killed", pid, d.Paths.Dir),
		FixHint: "try again in a moment; if it stays, run `servicectl daemon restart`",
	}
}

// awaitGone waits until the daemon with this pid has ended. An agent's may have taken its place by then.
func awaitGone(ctx context.Context, d reach.Daemon, pid int64) error {
	gone, err := ends(ctx, d, pid, 20*time.Second)
	if err == nil && !gone {
		err = &client.Error{Code: codeUnavailable, Message: fmt.Sprintf("the daemon (pid %d) still runs 20 s after it was asked to end", pid), Retryable: true}
	}
	return err
}

// ends tells whether the daemon with this pid lets go of its directory within limit. Without a pid any daemon counts.
func ends(ctx context.Context, d reach.Daemon, pid int64, limit time.Duration) (bool, error) {
	for late := time.Now().Add(limit); ; {
		now := int64(d.PID())
		if !d.Held() || pid != 0 && now != 0 && now != pid {
			return true, nil
		}
		if time.Now().After(late) {
			return false, nil
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (a *app) stopped(pid int64) error {
	if a.json {
		return a.JSON(map[string]any{"stopped": pid != 0, "pid": pid})
	}
	if pid == 0 {
		a.Say("The daemon is not running.")
	} else {
		a.Say("The daemon (pid %d) has stopped.", pid)
	}
	return nil
}

// logs prints the end of the log as it is; it is the same with --json, because its lines are the daemon's own.
func (a *app) logs(ctx context.Context, lines int, follow bool) error {
	d, err := reach.Find()
	if err != nil {
		return err
	}
	file, err := os.Open(d.LogFile())
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("reading %s: the daemon has not written it yet", d.LogFile())
	}
	if err != nil {
		return err
	}
	defer file.Close()
	out := term.Stream(a.Out)
	if err := tail(out, file, lines); err != nil || !follow {
		return err
	}
	for {
		if _, err := io.Copy(out, file); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Canceled
		case <-time.After(200 * time.Millisecond):
		}
		if file, err = reopened(file, d.LogFile()); err != nil {
			return err
		}
	}
}

// reopened follows a log that was replaced or cut.
func reopened(file *os.File, path string) (*os.File, error) {
	now, err := os.Stat(path)
	if err != nil {
		return file, nil // it comes back with the next daemon
	}
	held, err := file.Stat()
	if err != nil {
		return file, err
	}
	at, err := file.Seek(0, io.SeekCurrent)
	if err != nil || os.SameFile(now, held) && now.Size() >= at {
		return file, err
	}
	next, err := os.Open(path)
	if err != nil {
		return file, nil
	}
	file.Close()
	return next, nil
}

// tail writes the last n lines and leaves the file at its end.
func tail(out io.Writer, file io.Reader, n int) error {
	var kept [][]byte
	r := bufio.NewReader(file)
	for {
		line, err := r.ReadBytes('\n')
		if len(line) > 0 {
			kept = append(kept, line)
		}
		if len(kept) > max(n, 0) {
			kept = kept[1:]
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
	}
	_, err := out.Write(bytes.Join(kept, nil))
	return err
}
