//go:build !linux

package enginetest

// UseMemory does nothing: only Linux has an in-memory file system at a known path.
func UseMemory() {}
