// Package usersystemd runs a test under a real systemd of an ordinary user, which is made for that test and ends with it.
// It needs root, for namespaces, and the machine's systemd, util-linux and a cgroup2 mount; it knows nothing of what is
// tested.
package usersystemd

import (
	"os"
	"path/filepath"
	"testing"
)

// here names the variable that tells a test binary that it runs inside already: the test's directory.
const here = "SERVICE_TEST_SYSTEMD"

// Inside tells whether this process runs under the user's systemd.
func Inside() bool { return os.Getenv(here) != "" }

// Bin is, inside, where the programs given to Enter lie.
func Bin() string { return filepath.Join(os.Getenv(here), "bin") }

// missing ends a test that lacks something of the machine: as skipped on a person's machine, as failed in CI.
func missing(t *testing.T, what, how string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s is missing: %s", what, how)
	}
	t.Skipf("SKIPPED, %s is missing: %s", what, how)
}
