package dialer

import (
	"errors"
	"fmt"

	"github.com/service-dev/service/internal/problem"
)

// ErrNotRunning means that no daemon is listening.
var ErrNotRunning = problem.New(problem.CodeDaemonNotRunning, "the daemon is not running",
	"Run any other command, which starts it, or `servicectl daemon run`.")

// errNotReady is the cause of a failed start if the daemon's program ran.
var errNotReady = errors.New("the daemon did not become ready")

// NotResponding returns the error for a daemon that holds the directory but does not respond, because it is suspended
// or hangs.
func (d Daemon) NotResponding() *problem.Error {
	who := "the daemon"
	if pid := d.PID(); pid != 0 {
		who = fmt.Sprintf("the daemon (pid %d)", pid)
	}
	return problem.New(problem.CodeDaemonNotResponding, fmt.Sprintf("%s did not respond within %s", who, AnswerTimeout),
		"Run `servicectl daemon restart`: it ends the process that does not respond and starts a new daemon, "+
			"and connected agents continue with it.")
}

// Missing returns the error for a daemon whose program is not installed, or was removed while this client was running.
func (d Daemon) Missing() *problem.Error {
	return problem.New(problem.CodeProgramMissing, d.Program+" does not exist", "Install the service again; if you "+
		"removed it, delete the entry \"service\" from your coding agent's MCP settings.")
}

// sandboxError returns the error for a sandbox that denies this process access to the daemon's socket or directory.
func sandboxError(path string, directory bool, err error) error {
	message, hint := "connect to "+path, "Allow the Unix socket "+path+" in the sandbox's settings (allowed Unix "+
		"sockets, or network access for local commands)."
	if directory {
		message, hint = "use the state directory "+path, "Allow writes to "+path+" in the sandbox's settings (writable "+
			"paths), or set SERVICE_CONFIG_DIR to a directory that may be written."
	}
	return &problem.Error{Code: problem.CodeSandboxBlocked, Message: message + ": " + err.Error(), FixHint: hint, Err: err}
}

// unsafeError returns the error for a directory or socket that other users control.
func unsafeError(path, reason, fixHint string) error {
	return problem.New("unsafe_directory", "refusing "+path+": "+reason, fixHint)
}

// directoryError returns the error for an environment without a usable state directory.
func directoryError(err error) error {
	return &problem.Error{Code: "unusable_directory", Message: "find the state directory: " + err.Error(), Err: err,
		FixHint: "Set HOME to your home directory, or SERVICE_CONFIG_DIR to the absolute path of a directory that this " +
			"program can create or use, then restart it."}
}

// startError returns the error for a program that could not be started. final is set if the system reported a reason
// for which another attempt would also fail.
func startError(err error, final bool) error {
	return &problem.Error{Code: problem.CodeDaemonUnavailable, Message: "start the daemon: " + err.Error(),
		Retryable: !final, FixHint: "Run `servicectl doctor`."}
}

// unreachable returns the error for a daemon that was started but cannot be reached.
func (d Daemon) unreachable() error {
	return problem.New(problem.CodeDaemonUnavailable, "the daemon was started, but does not accept connections",
		"Read "+d.LogFile()+", then try again.")
}

// notReady returns the error for a daemon that ran but did not become ready. final is set if it reported the reason.
func (d Daemon) notReady(reason string, final bool) error {
	return &problem.Error{Code: problem.CodeDaemonUnavailable, Message: "start the daemon: " + reason,
		Retryable: !final, FixHint: "Read " + d.LogFile() + ", then try again.", Err: errNotReady}
}
