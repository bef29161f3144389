package procgroup

import (
	"os/exec"
	"strconv"
	"syscall"
)

// Separate prevents the terminal's Ctrl-C from reaching a process that has not started yet.
func Separate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// Terminate ends the process and everything it started. Windows cannot ask a program without a window to exit.
func Terminate(cmd *exec.Cmd) {
	_ = exec.Command("taskkill", "/T", "/F", "/PID",
		strconv.Itoa(cmd.Process.Pid)).Run() //nolint:noctx // it takes only a moment
}

// Kill kills the process.
func Kill(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
