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

// closeInherited closes the descriptors that this process inherited, apart from stdio and those that were taken over
// since. Inherited descriptors lack the flag close-on-exec; every descriptor that a Go program opens has it.
func closeInherited() {
	syscall.ForkLock.Lock() // on some systems a descriptor is opened first and gets the flag then
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
