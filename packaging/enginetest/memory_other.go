//go:build !linux

package enginetest

// UseMemory does nothing: only Linux has a file system in memory at a known place.
func UseMemory() {}
