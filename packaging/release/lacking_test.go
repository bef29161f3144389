package main

import (
	"os"
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
