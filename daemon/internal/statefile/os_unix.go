//go:build unix

package statefile

import (
	"io/fs"
	"os"
	"syscall"
)

// openPlain neither follows a link created after the check nor blocks on a pipe.
func openPlain(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
}

// openFollowing follows links and does not block on a pipe.
func openFollowing(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
}

func mine(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Getuid()
}

// shared returns the permissions that other users have.
func shared(info fs.FileInfo) fs.FileMode { return info.Mode().Perm() & 0o077 }
