package main

import (
	"os"
	"path/filepath"
	"testing"
)

// lacking ends a test that needs something that this machine does not have: it fails in CI and is skipped elsewhere.
func lacking(t *testing.T, what, how string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s is missing: %s", what, how)
	}
	t.Skipf("SKIPPED, %s is missing: %s", what, how)
}

// madeFile returns the artefact whose name matches a pattern, from the directory RELEASE_DIST.
func madeFile(t *testing.T, pattern string) string {
	t.Helper()
	if os.Getenv("RELEASE_DIST") == "" {
		lacking(t, "RELEASE_DIST", "make release, and name its directory")
	}
	files, err := filepath.Glob(filepath.Join(os.Getenv("RELEASE_DIST"), pattern))
	if err != nil || len(files) != 1 {
		t.Fatalf("%d artefacts are named %s, %v", len(files), pattern, err)
	}
	return files[0]
}
