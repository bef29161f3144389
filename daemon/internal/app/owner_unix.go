//go:build unix

package app

import (
	"io/fs"
	"os"
	"syscall"
)

// mine tells whether the file belongs to the user that runs this process.
func mine(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Getuid()
}

// closeOnExec keeps a descriptor from the programs that are started later.
func closeOnExec(fd uintptr) { syscall.CloseOnExec(int(fd)) }
