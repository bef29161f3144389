package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func uninstallKeepsState(t *testing.T, w *installWorld) {
	state := filepath.Join(w.home, ".service", "auth.json")
	w.must(os.MkdirAll(filepath.Dir(state), 0o700))
	w.must(os.WriteFile(state, []byte("{}"), 0o600))
	w.install()
	out := w.install("--uninstall")
	if _, err := os.Stat(state); err != nil {
		t.Error(err)
	}
	for _, text := range []string{"uninstall --purge", w.home + "/.service"} {
		if !strings.Contains(out, text) {
			t.Errorf("install.sh --uninstall does not say %q:\n%s", text, out)
		}
	}
	if _, err := os.Lstat(w.prefix); err == nil {
		t.Errorf("left behind:\n%s", output(t, "find", w.prefix))
	}
}

// uninstallKeepsNoSettings removes the programs after `servicectl uninstall --purge` removed the settings.
func uninstallKeepsNoSettings(t *testing.T, w *installWorld) {
	w.install()
	out := w.install("--uninstall")
	if strings.Contains(out, "Kept") || strings.Contains(out, "--purge") || !strings.Contains(out, "Removed the service") {
		t.Errorf("without settings install.sh --uninstall says:\n%s", out)
	}
}

// uninstallRemovesOwnFolders requires that uninstall leaves a folder that was there before, and no folder of its own.
func uninstallRemovesOwnFolders(t *testing.T, w *installWorld) {
	w.install()
	w.release("2.0.0")
	w.install()
	w.install("--uninstall")
	if _, err := os.Lstat(w.prefix); err == nil {
		t.Errorf("left behind:\n%s", output(t, "find", w.prefix))
	}
	theirs := filepath.Join(w.prefix, "share", "man")
	w.must(os.MkdirAll(theirs, 0o755))
	w.install()
	file := filepath.Join(w.prefix, "bin", "other")
	w.must(os.WriteFile(file, nil, 0o755))
	w.install("--uninstall")
	for _, path := range []string{theirs, file} {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
	for _, folder := range []string{"lib", "share/man/man1", "share/zsh"} {
		if _, err := os.Stat(filepath.Join(w.prefix, folder)); err == nil {
			t.Errorf("uninstall left the empty folder %s", folder)
		}
	}
}
