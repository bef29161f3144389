package opener

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/service-dev/service/daemon/internal/caller"
)

// unitCommand has the person's systemd start xdg-open, in a unit of its own. Its title stands in for the command line in
// the journal, for the URL holds the user code. Values of variables stay out of the command line.
func unitCommand(ctx context.Context, who caller.Caller, url string) *exec.Cmd {
	direct := platformCommand(ctx, who, url)
	run, err := exec.LookPath("systemd-run")
	if err != nil || direct.Err != nil {
		return direct
	}
	args := []string{"--user", "--quiet", "--collect", "--description=A page for the person's browser"}
	for _, name := range desktop {
		if _, ok := who.Env[name]; ok {
			args = append(args, "--setenv="+name)
		}
	}
	cmd := exec.CommandContext(ctx, run, append(args, "--", direct.Path, url)...)
	cmd.Env = direct.Env
	if !slices.ContainsFunc(cmd.Env, func(pair string) bool { return strings.HasPrefix(pair, "XDG_RUNTIME_DIR=") }) {
		cmd.Env = append(cmd.Env, "XDG_RUNTIME_DIR="+os.Getenv("XDG_RUNTIME_DIR"))
	}
	return cmd
}
