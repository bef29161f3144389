//go:build !linux && !darwin && !windows

package opener

import (
	"context"
	"os"
	"os/exec"

	"github.com/service-dev/service/daemon/internal/caller"
)

// platformCommand is xdg-open <url>, as on Linux.
func platformCommand(ctx context.Context, who caller.Caller, url string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "xdg-open", url)
	cmd.Env = environment(who, os.LookupEnv, []string{"PATH", "HOME", "LANG"}, []string{"DISPLAY", "XAUTHORITY", "WAYLAND_DISPLAY", "XDG_RUNTIME_DIR"})
	return cmd
}

func hasDesktop(env map[string]string) bool {
	return env["DISPLAY"] != "" || env["WAYLAND_DISPLAY"] != ""
}

// isPlatformSafe: no shell is between us and the command.
func isPlatformSafe(string) bool { return true }
