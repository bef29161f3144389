//go:build unix

package statefile

import (
	"io/fs"
	"os"
	"syscall"
)

// openPlain opens a file without blocking on a pipe. It does not follow a link created after the check.
func openPlain(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
}

// openFollowing opens a file, following links, without blocking on a pipe.
func openFollowing(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
}

func mine(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Getuid()
}

// shared returns the permissions that other users have.
func shared(info fs.FileInfo) fs.FileMode { return info.Mode().Perm() & 0o077 }
