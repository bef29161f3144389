package app

import (
	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/codes"
)

// sandboxProblem is the result of every call that needs an adapter while a sandbox forbids sockets. It names the
// socket to allow.
func sandboxProblem(socket string) *backend.Problem {
	return &backend.Problem{
		Code:    backend.CodeSandboxBlocked,
		Message: "the sandbox of this agent blocks access to the daemon's socket " + socket,
		FixHint: "Allow the agent's sandbox to connect to the Unix socket " + socket +
			" (for example in its list of allowed " +
			"sockets or writable paths), then restart the agent's MCP server. Tools that need no account still work.",
	}
}

// blockedCodes finds no device code, so that an attempt to complete a link reports the sandbox as the reason.
type blockedCodes struct{ problem error }

func (b blockedCodes) Find(string) (codes.Issued, bool, error) {
	return codes.Issued{}, false, b.problem
}
func (b blockedCodes) Put(string, codes.Issued) error           { return b.problem }
func (b blockedCodes) Update(string, func(*codes.Issued)) error { return nil }
func (b blockedCodes) Remove(string) error                      { return nil }
