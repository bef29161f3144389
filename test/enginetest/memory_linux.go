package enginetest

import (
	"os"

	"golang.org/x/sys/unix"
)

// UseMemory places temporary files of the tests in memory if there is space, because each SQLite commit waits for the
// disk and the tests create hundreds of databases.
func UseMemory() {
	const memory, capacity = "/dev/shm", 2 << 30
	var s unix.Statfs_t
	usable := os.Getenv("TMPDIR") == "" && unix.Access(memory, unix.W_OK) == nil && unix.Statfs(memory, &s) == nil
	if usable && s.Bavail*uint64(s.Bsize) > capacity {
		_ = os.Setenv("TMPDIR", memory)
	}
}
