//go:build unix

package procgroup

import (
	"os/exec"
	"syscall"
)

// Separate puts a process that has not started yet into its own group. The whole group can then be ended together,
// and the terminal's Ctrl-C does not reach it. Separate also applies EndWithParent.
func Separate(cmd *exec.Cmd) {
	EndWithParent(cmd)
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
}

// Terminate asks the process and its group to exit.
func Terminate(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }

// Kill kills the process and its group.
func Kill(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
