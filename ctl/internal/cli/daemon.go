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
	"github.com/service-dev/service/ctl/internal/command"
	"github.com/service-dev/service/ctl/internal/dialer"
	"github.com/service-dev/service/ctl/internal/term"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/internal/programpath"
)

func (a *app) daemon() *cobra.Command {
	var follow bool
	var lines int
	logs := command.New("logs", "Print the daemon's log", "",
		func(ctx context.Context) error { return a.logs(ctx, lines, follow) })
	logs.Flags().BoolVarP(&follow, "follow", "f", false, "print new lines until Ctrl-C")
	logs.Flags().IntVarP(&lines, "lines", "n", 200, "number of lines to print")
	return command.Group("daemon", "Run, stop or restart the daemon, or read its log", "", logs,
		command.New("run", "Run the daemon in the foreground", "", func(context.Context) error { return runDaemon() }),
		command.New("stop", "Ask the daemon to finish and exit", "", a.stopDaemon),
		command.New("restart", "Stop the daemon and start the one in this program's folder",
			"Connected agents continue with the new daemon. Each open call gets one clear error, and nothing is done "+
				"twice.",
			a.restartDaemon))
}

// runDaemon replaces this process with serviced.
func runDaemon() error {
	path, err := programpath.Beside("serviced")
	if err != nil {
		return err
	}
	return dialer.Exec(path, []string{path, "run"})
}

// stopDaemon stops the daemon and waits until it has exited.
func (a *app) stopDaemon(ctx context.Context) error {
	pid, err := a.stopOrKill(ctx)
	if err != nil {
		return err
	}
	return a.stopped(pid)
}

// stopOrKill stops the daemon and returns its PID, or 0 if none was running. It ends the process of a daemon that does
// not respond or is too old for requests.
func (a *app) stopOrKill(ctx context.Context) (int, error) {
	d, err := dialer.Find()
	if err != nil {
		return 0, err
	}
	pid, err := askToStop(ctx, d, a.Name)
	code := problem.CodeOf(err)
	switch code {
	case problem.CodeDaemonNotResponding, problem.CodeDaemonUnavailable, problem.CodeProtocolMismatch:
	default:
		return pid, err
	}
	if pid = d.PID(); pid == 0 {
		return 0, err
	}
	wait := forceWait
	if code == problem.CodeProtocolMismatch {
		wait = drainWait
	}
	if err := killDaemon(ctx, d, pid, wait); err != nil {
		return 0, err
	}
	if code != problem.CodeProtocolMismatch {
		a.Remark("the daemon (pid %d) did not respond: its process was killed", pid)
	}
	return pid, nil
}

// askToStop asks the daemon to drain and exit, and waits until it has. It treats a daemon that exits before it
// responds, because another program killed or stopped it, as stopped.
func askToStop(ctx context.Context, d dialer.Daemon, program string) (int, error) {
	c, err := client.Open(ctx, client.Options{Program: program, Running: true, AnyProtocol: true})
	if errors.Is(err, dialer.ErrNotRunning) {
		return 0, unreachable(ctx, patience)
	}
	if err != nil {
		return 0, err
	}
	defer c.Close()
	running := d.PID()
	asking, cancel := context.WithTimeout(ctx, dialer.AnswerTimeout)
	defer cancel()
	pid, err := c.Stop(asking)
	if problem.CodeOf(err) == problem.CodeDaemonGone {
		pid, err = running, nil
	}
	if err != nil {
		return 0, err
	}
	return pid, awaitGone(ctx, d, pid)
}

// How long to wait for a process to exit after each signal. A daemon that is merely too old may need this time to
// finish calls.
const (
	forceWait = 5 * time.Second
	drainWait = 20 * time.Second
)

// killDaemon ends the process of a daemon, after checking that it holds the state directory. After each signal, it
// waits for the process to exit.
func killDaemon(ctx context.Context, d dialer.Daemon, pid int, wait time.Duration) error {
	process, err := os.FindProcess(pid)
	if err != nil {
		return fmt.Errorf("find process %d: %w", pid, err)
	}
	defer func() { _ = process.Release() }()
	if !holds(d, pid) { // the process is held open here, so its ID cannot be reused after this check
		return &problem.Error{
			Code: problem.CodeDaemonUnavailable, Message: fmt.Sprintf("process %d may not be the daemon that holds %s", pid,
				d.Paths.Dir),
			FixHint: "End the serviced process of this user yourself, then run the command again.",
		}
	}
	for _, end := range []func(*os.Process) error{askProcess, (*os.Process).Kill} {
		if err := end(process); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("end process %d: %w", pid, err)
		}
		if gone, err := ends(ctx, d, pid, wait); gone || err != nil {
			return err
		}
	}
	return fmt.Errorf("end process %d: it is still running", pid)
}

// restartDaemon stops the daemon if one is running, and starts the installed program unless a reconnecting agent has
// already done so.
func (a *app) restartDaemon(ctx context.Context) error {
	old, err := a.stopOrKill(ctx)
	if err != nil {
		return err
	}
	c, s, err := a.askStatus(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	return a.Print(map[string]any{"stoppedPid": old, "pid": s.PID, "version": s.Version}, func() {
		a.Say("The daemon was restarted: version %s, pid %d.", s.Version, s.PID)
	})
}

// patience is how long to wait for a daemon that lost its sockets to notice and exit.
const patience = 5 * time.Second

// unreachable returns an error if a daemon holds the state directory but cannot be dialled, because its sockets were
// deleted or it is stopping. It returns nil if no daemon is running.
func unreachable(ctx context.Context, patience time.Duration) error {
	d, err := dialer.Find()
	if err != nil {
		return err
	}
	pid := d.PID()
	if gone, err := ends(ctx, d, pid, patience); gone || err != nil {
		return err
	}
	return &problem.Error{
		Code: problem.CodeDaemonUnavailable, Retryable: true,
		Message: fmt.Sprintf("the daemon (pid %d) cannot be reached, but it still holds %s: it is exiting, or must be killed",
			pid, d.Paths.Dir),
		FixHint: "Try again in a moment; if this error persists, run `servicectl daemon restart`.",
	}
}

// awaitGone waits until the daemon with this PID has exited. Another daemon may already have replaced it.
func awaitGone(ctx context.Context, d dialer.Daemon, pid int) error {
	gone, err := ends(ctx, d, pid, 20*time.Second)
	if err == nil && !gone {
		err = &problem.Error{Code: problem.CodeDaemonUnavailable, Message: fmt.Sprintf(
			"the daemon (pid %d) is still running 20 s after it was asked to stop", pid), Retryable: true}
	}
	return err
}

// ends reports whether the daemon with this PID releases its directory within limit. A PID of 0 means any daemon.
func ends(ctx context.Context, d dialer.Daemon, pid int, limit time.Duration) (bool, error) {
	for late := time.Now().Add(limit); ; {
		now := d.PID()
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

func (a *app) stopped(pid int) error {
	return a.Print(map[string]any{"stopped": pid != 0, "pid": pid}, func() {
		if pid == 0 {
			a.Say("The daemon is not running.")
		} else {
			a.Say("The daemon (pid %d) has stopped.", pid)
		}
	})
}

// logs prints the end of the daemon's log unchanged, even with --json, because the lines are already JSON.
func (a *app) logs(ctx context.Context, lines int, follow bool) error {
	d, err := dialer.Find()
	if err != nil {
		return err
	}
	file, err := os.Open(d.LogFile())
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("read %s: the daemon has not created it yet", d.LogFile())
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

// reopened returns the new file if the log was replaced or truncated, or file otherwise.
func reopened(file *os.File, path string) (*os.File, error) {
	now, err := os.Stat(path)
	if err != nil {
		return file, nil // the next daemon creates the log again
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

// tail prints the last n lines and leaves the file offset at the end.
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
