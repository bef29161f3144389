package cli

import (
	"os/exec"
	"strconv"
	"syscall"
)

// ownGroup prevents the terminal's Ctrl-C from reaching the app, because servicectl ends the app itself.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// askGroup ends the app and everything it started. Windows has no gentler way to end a program without a window.
func askGroup(cmd *exec.Cmd) {
	_ = exec.Command("taskkill", "/T", "/F", "/PID",
		strconv.Itoa(cmd.Process.Pid)).Run() //nolint:noctx // it takes a moment at most
}

func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
