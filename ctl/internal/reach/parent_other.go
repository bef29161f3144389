//go:build !linux && !darwin && !windows

package reach

// awaitExit has no way here: the parent is looked for now and then.
func awaitExit(int) bool { return false }
