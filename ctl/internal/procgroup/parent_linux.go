package procgroup

import (
	"os/exec"
	"syscall"
)

// EndWithParent makes a process that is not started yet exit when this one exits, even if this one is killed. An app
// that stays attached would keep the daemon from going idle.
func EndWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
}
