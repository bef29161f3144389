package local

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

var variables = []string{
	"PATH", "SystemRoot", "SystemDrive", "ComSpec", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "TEMP", "TMP",
	"PROGRAMDATA", "ProgramFiles",
}

// platformCommand returns `cmd.exe /c start "" "<url>"`. cmd.exe has its own parsing rules: inside double quotes only
// quotes and percent signs are special, and isPlatformSafe refuses both.
func platformCommand(url string) *exec.Cmd {
	shell := filepath.Join(os.Getenv("SystemRoot"), "System32", "cmd.exe")
	cmd := withEnvironment(exec.CommandContext(context.Background(), shell), variables)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		CmdLine: commandLine(url), HideWindow: true, CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP,
	}
	return cmd
}

func commandLine(url string) string { return `cmd.exe /d /c start "" "` + url + `"` }

// isPlatformSafe refuses text that cmd.exe would expand even inside quotes (%CD%). The service's own URLs never contain
// such text.
func isPlatformSafe(url string) bool { return !strings.ContainsAny(url, `"%`) }

// hasDesktop reports whether the user is at this machine.
func hasDesktop(getenv func(string) string) bool { return getenv("SSH_CONNECTION") == "" }
