package opener

import (
	"context"
	"os"
	"os/exec"

	"github.com/service-dev/service/daemon/internal/caller"
)

var base = []string{"PATH", "HOME", "USER", "LOGNAME", "LANG", "TMPDIR", "__CF_USER_TEXT_ENCODING"}

// platformCommand is open <url>.
func platformCommand(ctx context.Context, who caller.Caller, url string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "/usr/bin/open", url)
	cmd.Env = environment(who, os.LookupEnv, base, nil)
	return cmd
}

func hasDesktop(map[string]string) bool { return true }

// isPlatformSafe: no shell is between us and the command.
func isPlatformSafe(string) bool { return true }
