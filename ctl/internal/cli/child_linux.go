package cli

import (
	"os/exec"
	"syscall"
)

// dieWithParent ends the example app with the demo even when that is killed: an app that stays attached would keep the
// daemon busy for ever.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
}
