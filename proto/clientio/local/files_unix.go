//go:build unix

package local

import (
	"io/fs"
	"syscall"
)

// openNonblock keeps a pipe from holding up who opens it.
const openNonblock = syscall.O_NONBLOCK

func isPrivate(mode fs.FileMode) bool { return mode.Perm()&0o077 == 0 }
