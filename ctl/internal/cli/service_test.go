package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/service-dev/service/packaging/usersystemd"
)

// TestServiceUnderSystemd runs the manual of `servicectl service` under a real systemd of an ordinary user.
func TestServiceUnderSystemd(t *testing.T) {
	if !usersystemd.Enter(t, bin) {
		return
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/systemd",
		Setup: func(e *testscript.Env) error {
			home := os.Getenv("HOME") // systemd's own: it looks for units there
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
