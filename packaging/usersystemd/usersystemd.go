// Package usersystemd runs a test under a real systemd that is started for that test and ends with it: that of an
// ordinary user, or that of a system. It needs root, for namespaces, and the machine's systemd, util-linux and a
// cgroup2 mount. It knows nothing about the tests.
package usersystemd

import (
	"os"
	"path/filepath"
	"testing"
)

// here is the variable that a test binary finds inside. It contains the directory of the test.
const here = "SERVICE_TEST_SYSTEMD"

// Inside reports whether this process runs under a systemd of this package.
func Inside() bool { return os.Getenv(here) != "" }

// Bin returns, inside Enter, the directory of the programs that were passed to it.
func Bin() string { return filepath.Join(os.Getenv(here), "bin") }

// missing skips a test if the machine lacks a requirement, and fails it in CI.
func missing(t *testing.T, what, how string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s is missing: %s", what, how)
	}
	t.Skipf("SKIPPED, %s is missing: %s", what, how)
}
