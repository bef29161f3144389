package procgroup

import (
	"os/exec"
	"syscall"
)

// EndWithParent makes a process that is not started yet exit when this one exits, even if this one is killed.
func EndWithParent(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGTERM
}
