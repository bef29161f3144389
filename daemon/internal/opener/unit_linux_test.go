package opener

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A page that systemd opens is in the person's desktop, and neither the code in its address nor a variable's value is told
// where others read it.
func TestPagesOfAUnit(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"xdg-open", "systemd-run"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	t.Setenv("XDG_RUNTIME_DIR", "/run/user/7")
	t.Setenv("SERVICE_TEST_SECRET", "leaked")
	const page = "http://localhost:1/activate?code=BCDF-GHJK"
	cmd := unitCommand(t.Context(), desktopOf("XAUTHORITY", "/home/ada/.Xauthority"), page)
	line := strings.Join(cmd.Args, " ")
	if cmd.Path != filepath.Join(dir, "systemd-run") || !strings.HasSuffix(line, " -- "+filepath.Join(dir, "xdg-open")+" "+page) {
		t.Errorf("it runs %s: %s", cmd.Path, line)
	}
	for _, want := range []string{"--user", "--setenv=DISPLAY", "--setenv=XAUTHORITY", "--description=A page for the person's browser"} {
		if !slices.Contains(cmd.Args, want) {
			t.Errorf("%s is missing: %s", want, line)
		}
	}
	if strings.Contains(line, ".Xauthority") || strings.Contains(line, "WAYLAND") {
		t.Errorf("too much is told: %s", line)
	}
	for _, want := range []string{"DISPLAY=:7", "XAUTHORITY=/home/ada/.Xauthority", "XDG_RUNTIME_DIR=/run/user/7"} {
		if !slices.Contains(cmd.Env, want) {
			t.Errorf("%s is missing: %v", want, cmd.Env)
		}
	}
	if strings.Contains(strings.Join(cmd.Env, " "), "leaked") {
		t.Errorf("the daemon's variables are passed on: %v", cmd.Env)
	}

	if err := os.Remove(filepath.Join(dir, "systemd-run")); err != nil {
		t.Fatal(err)
	}
	if cmd := unitCommand(t.Context(), desktopOf(), page); cmd.Path != filepath.Join(dir, "xdg-open") {
		t.Errorf("without systemd-run: %s", cmd.Path)
	}
}
