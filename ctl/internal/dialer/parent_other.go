//go:build !linux && !darwin && !windows

package dialer

// awaitExit is not supported on this system; AwaitParent polls the parent instead.
func awaitExit(int) bool { return false }
