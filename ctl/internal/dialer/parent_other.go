//go:build !linux && !darwin && !windows

package dialer

// awaitExit is not available here; the parent is polled.
func awaitExit(int) bool { return false }
