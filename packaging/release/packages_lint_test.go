package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestPackage_PassesLintian checks that lintian reports neither errors nor warnings. Overrides are in files/lintian,
// with reasons.
func TestPackage_PassesLintian(t *testing.T) {
	require(t, map[string]string{"lintian": "lintian"})
	for _, name := range []string{"service-toolkit", "service-backend"} {
		cmd := exec.CommandContext(t.Context(), "lintian", "--fail-on", "error,warning", artefactOf(t, name+"_*_amd64.deb"))
		if out, err := cmd.Output(); err != nil || len(out) > 0 {
			t.Errorf("lintian: %v\n%s", err, out)
		}
	}
}

func TestPackage_PassesRPMLint(t *testing.T) {
	require(t, map[string]string{"rpmlint": "rpmlint"})
	for _, name := range []string{"service-toolkit", "service-backend"} {
		out, err := exec.CommandContext(t.Context(), "rpmlint", "--config", "testdata/rpmlint.toml",
			artefactOf(t, name+"-*.x86_64.rpm")).CombinedOutput()
		if err != nil || !strings.Contains(string(out), " 0 errors") {
			t.Errorf("rpmlint: %v\n%s", err, out)
		}
	}
}

// TestManPages_AreReadable checks that groff can format every page of the archive, and that each page contains its
// name.
func TestManPages_AreReadable(t *testing.T) {
	require(t, map[string]string{"man": "man-db"})
	dir := t.TempDir()
	output(t, "tar", "-xzf", artefactOf(t, "service-[0-9]*-linux-amd64.tar.gz"), "-C", dir, "--strip-components=1")
	pages, err := filepath.Glob(filepath.Join(dir, "man", "*.1"))
	if err != nil || len(pages) < 50 {
		t.Fatalf("found %d man pages, %v", len(pages), err)
	}
	for _, page := range pages {
		cmd := exec.CommandContext(t.Context(), "man", "--warnings", "-P", "cat", "-l", page)
		cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "MANWIDTH=80")
		var warnings strings.Builder
		cmd.Stderr = &warnings
		text, err := cmd.Output()
		name := strings.TrimSuffix(filepath.Base(page), ".1")
		if err != nil || warnings.Len() > 0 || !strings.Contains(string(text), name) {
			t.Errorf("%s: %v %s", name, err, warnings.String())
		}
	}
}
