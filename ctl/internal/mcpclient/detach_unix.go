//go:build unix

package mcpclient

import (
	"os/exec"
	"syscall"
)

// detach keeps a Ctrl-C at the terminal from the child: its parent decides when it ends.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
