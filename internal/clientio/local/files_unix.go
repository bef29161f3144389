//go:build unix

package local

import (
	"io/fs"
	"os"
	"syscall"
)

// openNonblock prevents open from blocking on a pipe.
const openNonblock = syscall.O_NONBLOCK

func isPrivate(mode fs.FileMode) bool { return mode.Perm()&0o077 == 0 }

// isForeign reports whether a file belongs neither to the user of this process nor to root.
func isForeign(info fs.FileInfo) bool {
	owner, ok := info.Sys().(*syscall.Stat_t)
	return ok && owner.Uid != 0 && int(owner.Uid) != os.Getuid()
}
