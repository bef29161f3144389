package procgroup

import (
	"os/exec"
	"syscall"
)

// EndWithParent ensures that a process that has not started yet exits when this one exits, even if this one
// is killed.
func EndWithParent(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGTERM
}
