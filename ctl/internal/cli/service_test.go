package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/service-dev/service/test/usersystemd"
)

// browser replaces xdg-open. It records its environment and permissions, and does not exit.
const browser = `#!/bin/sh
echo $$ >"$HOME/browser"
{ echo "page $1"; echo "display $DISPLAY"; cat /proc/self/cgroup; grep NoNewPrivs /proc/self/status; } >"$HOME/opened.part"
mv "$HOME/opened.part" "$HOME/opened"
exec sleep 300
`

// TestService_UnderSystemd runs the script of `servicectl service` under the real systemd of an ordinary user.
func TestService_UnderSystemd(t *testing.T) { underSystemd(t, "testdata/systemd/service.txtar") }

// TestService_LifecycleUnderSystemd covers a daemon that is killed, hangs, is idle or cannot be started.
func TestService_LifecycleUnderSystemd(t *testing.T) { underSystemd(t, "testdata/systemd/life.txtar") }

// TestService_FromPackageUnderSystemd covers programs that a package installed together with units.
func TestService_FromPackageUnderSystemd(t *testing.T) {
	underSystemd(t, "testdata/systemd/packaged.txtar")
}

// underSystemd runs one script. A systemd instance has one home directory, so each script starts its own instance.
func underSystemd(t *testing.T, story string) {
	t.Parallel()
	if !usersystemd.Enter(t, bin) {
		return
	}
	// The home of this systemd instance, which reads units from it.
	home := os.Getenv("HOME")
	if err := os.Mkdir(filepath.Join(home, "tools"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "tools", "xdg-open"), []byte(browser), 0o700); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Files: []string{story},
		Setup: func(e *testscript.Env) error {
			for name, value := range map[string]string{
				"PATH": os.Getenv("PATH"), "HOME": home, "XDG_RUNTIME_DIR": os.Getenv("XDG_RUNTIME_DIR"),
				"STATE": filepath.Join(home, ".service"), "UNITS": filepath.Join(home, ".config", "systemd", "user"), "BIN": bin,
			} {
				e.Setenv(name, value)
			}
			return nil
		},
		Cmds: verbs(),
	})
}
