//go:build unix

package pluginhost

import (
	"os"
	"os/exec"
	"syscall"
)

// ownGroup puts the adapter into its own process group, which protects it from the terminal's Ctrl-C and lets its
// children be killed with it.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func killGroup(cmd *exec.Cmd) error {
	err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	if err == syscall.ESRCH {
		return os.ErrProcessDone
	}
	return err
}
