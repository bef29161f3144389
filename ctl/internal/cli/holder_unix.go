//go:build unix

package cli

import (
	"os"
	"syscall"
)

// askProcess asks a process to exit cleanly. It also resumes a stopped process, which otherwise could not exit.
func askProcess(p *os.Process) error {
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return p.Signal(syscall.SIGCONT)
}
