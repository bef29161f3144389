//go:build unix

package cli

import (
	"os/exec"
	"syscall"
)

// ownGroup puts the app into its own process group, so that the whole group can be ended at once.
func ownGroup(cmd *exec.Cmd) {
	endWithParent(cmd)
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
}

func askGroup(cmd *exec.Cmd)  { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
