//go:build unix

package dialer

import (
	"os"
	"path/filepath"
	"syscall"

	"github.com/service-dev/service/internal/rendezvous"
)

// StarterVerb is the first argument of a starter (Daemon.Starter); the second one is the daemon's program.
const StarterVerb = "start-daemon"

// starterBeside returns service-mcp, the smallest program in the daemon's directory.
func starterBeside(program string) string { return filepath.Join(filepath.Dir(program), "service-mcp") }

// StartDetached starts the daemon with this process's descriptors and environment, and returns the exit code. When this
// process exits, init adopts the daemon.
func StartDetached(program string) int {
	_, err := os.StartProcess(program, []string{program, "run"}, &os.ProcAttr{
		Dir: "/", Env: os.Environ(),
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr, os.NewFile(rendezvous.ReadyFD, "ready")},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return 1
	}
	return 0
}

// IsStarter reports whether this process was started as a starter, and returns the daemon's program.
func IsStarter(args []string) (program string, ok bool) {
	if len(args) != 3 || args[1] != StarterVerb {
		return "", false
	}
	_, told := os.LookupEnv(rendezvous.ReadyVar)
	return args[2], told
}
