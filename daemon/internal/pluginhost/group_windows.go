package pluginhost

import (
	"os/exec"
	"syscall"
)

// ownGroup puts the adapter into its own process group, so that Ctrl-C in the console does not stop it.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// killGroup kills the adapter. Our adapters have no child processes.
func killGroup(cmd *exec.Cmd) error { return cmd.Process.Kill() }
