package app

import (
	"log/slog"
	"time"

	"github.com/service-dev/service/daemon/internal/codes"
	"github.com/service-dev/service/daemon/internal/identity"
	"github.com/service-dev/service/daemon/internal/statefile"
	"github.com/service-dev/service/internal/problem"
)

// sandboxProblem returns the error for calls that need an adapter while a sandbox forbids sockets. Its hint contains
// the socket to allow.
func sandboxProblem(socket string) *problem.Error {
	return &problem.Error{
		Code:    problem.CodeSandboxBlocked,
		Message: "the sandbox of this agent blocks access to the daemon's socket " + socket,
		FixHint: "Allow the agent's sandbox to connect to the Unix socket " + socket +
			" (for example in its list of allowed " +
			"sockets or writable paths), then restart the agent's MCP server. Tools that need no account still work.",
	}
}

// directoryProblem returns the error for calls while a sandbox forbids access to the state directory.
func directoryProblem(dir string, cause error) *problem.Error {
	return &problem.Error{
		Code:    problem.CodeSandboxBlocked,
		Message: "this agent cannot use the state directory " + dir + ": " + cause.Error(),
		FixHint: "Allow the agent to write to " + dir + " (for example in its sandbox's list of writable paths), or set " +
			"SERVICE_CONFIG_DIR to a directory that it can write to, then restart the agent's MCP server. Tools that need " +
			"neither an account nor glasses still work.",
	}
}

// openInSandbox returns the identity of this install. If the identity cannot be stored, openInSandbox returns a
// temporary one and the cause.
func openInSandbox(dir string, now time.Time, log *slog.Logger) (*identity.Install, error) {
	err := statefile.EnsureDir(dir)
	if err == nil {
		var install *identity.Install
		if install, err = identity.Open(dir, now, log); err == nil {
			return install, nil
		}
	}
	return identity.Temporary(dir), err
}

// blockedCodes stores no device codes. Completing a link fails with the sandbox as the reason.
type blockedCodes struct{ problem error }

func (b blockedCodes) Find(string) (codes.Issued, bool, error) {
	return codes.Issued{}, false, b.problem
}
func (b blockedCodes) Put(string, codes.Issued) error           { return b.problem }
func (b blockedCodes) Update(string, func(*codes.Issued)) error { return nil }
func (b blockedCodes) Remove(string) error                      { return nil }
