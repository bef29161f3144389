package cli

import (
	"os/exec"
	"syscall"
)

// endWithParent makes the example app exit when the demo exits, even if the demo is killed. An app that stays attached
// would keep the daemon from going idle.
func endWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
}
