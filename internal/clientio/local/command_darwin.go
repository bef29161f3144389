package local

import (
	"context"
	"os/exec"
	"syscall"
)

var variables = []string{"PATH", "HOME", "USER", "LOGNAME", "LANG", "TMPDIR", "__CF_USER_TEXT_ENCODING"}

// platformCommand returns `open <url>` in its own session, so that Ctrl-C in the terminal does not stop it.
func platformCommand(url string) *exec.Cmd {
	cmd := withEnvironment(exec.CommandContext(context.Background(), "/usr/bin/open", url), variables)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd
}

// hasDesktop reports whether the user is at this machine.
func hasDesktop(getenv func(string) string) bool { return getenv("SSH_CONNECTION") == "" }

// isPlatformSafe returns true, because no shell interprets the URL.
func isPlatformSafe(string) bool { return true }
