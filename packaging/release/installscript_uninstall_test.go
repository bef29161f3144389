package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func uninstallKeepsState(t *testing.T, f *installFixture) {
	state := filepath.Join(f.home, ".service", "backend", "service.db") // without install.json, as after a reset
	f.must(os.MkdirAll(filepath.Dir(state), 0o700))
	f.must(os.WriteFile(state, []byte("{}"), 0o600))
	f.install()
	out := f.install("--uninstall")
	if _, err := os.Stat(state); err != nil {
		t.Error(err)
	}
	for _, text := range []string{"uninstall --purge", f.home + "/.service"} {
		if !strings.Contains(out, text) {
			t.Errorf("install.sh --uninstall does not say %q:\n%s", text, out)
		}
	}
	if _, err := os.Lstat(f.prefix); err == nil {
		t.Errorf("left behind:\n%s", output(t, "find", f.prefix))
	}
}

// uninstallKeepsNoSettings removes the programs after `servicectl uninstall --purge` has removed the settings but
// kept a file of the user.
func uninstallKeepsNoSettings(t *testing.T, f *installFixture) {
	f.install()
	f.must(os.Mkdir(filepath.Join(f.home, ".service"), 0o700))
	f.must(os.WriteFile(filepath.Join(f.home, ".service", "notes.txt"), nil, 0o600))
	out := f.install("--uninstall")
	if strings.Contains(out, "Kept") || strings.Contains(out, "--purge") || !strings.Contains(out, "Removed the service") {
		t.Errorf("without settings install.sh --uninstall says:\n%s", out)
	}
}

// uninstallRemovesOwnFolders checks that uninstalling keeps a folder that existed before, and removes all folders of
// its own.
func uninstallRemovesOwnFolders(t *testing.T, f *installFixture) {
	f.install()
	f.release("2.0.0")
	f.install()
	f.install("--uninstall")
	if _, err := os.Lstat(f.prefix); err == nil {
		t.Errorf("left behind:\n%s", output(t, "find", f.prefix))
	}
	theirs := filepath.Join(f.prefix, "share", "man")
	f.must(os.MkdirAll(theirs, 0o755))
	f.install()
	file := filepath.Join(f.prefix, "bin", "other")
	f.must(os.WriteFile(file, nil, 0o755))
	f.install("--uninstall")
	for _, path := range []string{theirs, file} {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
	for _, folder := range []string{"lib", "share/man/man1", "share/zsh"} {
		if _, err := os.Stat(filepath.Join(f.prefix, folder)); err == nil {
			t.Errorf("uninstall left the empty folder %s", folder)
		}
	}
}
