//go:build unix

package pluginhost

import (
	"os"
	"os/exec"
	"syscall"
)

// ownGroup puts the adapter into its own process group. Ctrl-C in the terminal then does not stop the adapter, and its
// children can be killed with it.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func killGroup(cmd *exec.Cmd) error {
	err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	if err == syscall.ESRCH {
		return os.ErrProcessDone
	}
	return err
}
