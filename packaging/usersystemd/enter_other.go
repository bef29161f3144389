//go:build !linux

package usersystemd

import "testing"

// Enter skips: systemd is Linux's.
func Enter(t *testing.T, bin string) bool {
	t.Helper()
	t.Skip("SKIPPED: systemd runs on Linux only")
	return false
}
