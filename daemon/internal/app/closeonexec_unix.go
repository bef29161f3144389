//go:build unix

package app

import (
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// closeOnExec prevents child processes from inheriting the descriptor.
func closeOnExec(fd uintptr) { syscall.CloseOnExec(int(fd)) }

// closeInherited closes inherited descriptors, except stdio and descriptors that the daemon uses. Inherited descriptors
// lack the close-on-exec flag, which Go sets on every descriptor that it opens.
func closeInherited() {
	syscall.ForkLock.Lock() // some systems open a descriptor first and set the flag afterwards
	defer syscall.ForkLock.Unlock()
	open, err := os.ReadDir("/dev/fd")
	if err != nil {
		return
	}
	for _, entry := range open {
		fd, err := strconv.Atoi(entry.Name())
		if err != nil || fd <= 2 {
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			_ = syscall.Close(fd)
		}
	}
}
