package cli

import (
	"os/exec"
	"syscall"
)

// endWithParent ends the example app when the demo ends, even if the demo is killed: an attached app would keep the
// daemon busy.
func endWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
}
