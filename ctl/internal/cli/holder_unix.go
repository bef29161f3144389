//go:build unix

package cli

import (
	"os"
	"syscall"
)

// askProcess tells a process to end in order, and lets it go on when it is stopped: else it could not.
func askProcess(p *os.Process) error {
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return p.Signal(syscall.SIGCONT)
}
