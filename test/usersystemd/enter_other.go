//go:build !linux

package usersystemd

import "testing"

// Enter skips the test, because systemd runs only on Linux.
func Enter(t *testing.T, _ string) bool {
	t.Helper()
	t.Skip("SKIPPED: systemd runs on Linux only")
	return false
}

// EnterSystem skips the test, like Enter.
func EnterSystem(t *testing.T, bin string) bool {
	t.Helper()
	return Enter(t, bin)
}
