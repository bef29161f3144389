package pluginhost

import (
	"os/exec"
	"syscall"
)

// ownGroup protects the adapter from the console's Ctrl-C.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// killGroup ends the adapter; our adapters have no child processes.
func killGroup(cmd *exec.Cmd) error { return cmd.Process.Kill() }
