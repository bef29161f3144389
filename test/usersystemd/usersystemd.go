// Package usersystemd runs a test under a real systemd that exists only for that test: either an ordinary user's or
// the system's. It needs root for namespaces, and the machine's systemd, util-linux and a cgroup2 mount. It is
// independent of the tests.
package usersystemd

import (
	"os"
	"path/filepath"
	"testing"
)

// here is the environment variable that is set in the run under systemd. Its value is the test's directory.
const here = "SERVICE_TEST_SYSTEMD"

// Inside reports whether this process runs under a systemd that this package started.
func Inside() bool { return os.Getenv(here) != "" }

// Bin returns the directory of the programs that were passed to Enter, when called under systemd.
func Bin() string { return filepath.Join(os.Getenv(here), "bin") }

// missing skips a test if the machine lacks a requirement, and fails it in CI.
func missing(t *testing.T, what, how string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s is missing: %s", what, how)
	}
	t.Skipf("SKIPPED, %s is missing: %s", what, how)
}
