//go:build unix

package cli

import (
	"os"
	"syscall"
)

// askProcess asks a process to end cleanly. It also continues a stopped process, which could not end otherwise.
func askProcess(p *os.Process) error {
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return p.Signal(syscall.SIGCONT)
}
