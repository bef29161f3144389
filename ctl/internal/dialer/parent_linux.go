package dialer

import (
	"os"
	"syscall"
)

// sysPidfdOpen is the same system call number on every architecture.
const sysPidfdOpen = 434

// awaitExit waits with a pidfd until the parent exits; this needs no thread. It returns false if pidfds are
// unavailable (before Linux 5.10, or in a sandbox). PR_SET_PDEATHSIG is unsuitable because it reports the end of the
// parent's thread.
func awaitExit(parent int) bool {
	fd, _, errno := syscall.Syscall(sysPidfdOpen, uintptr(parent), syscall.O_NONBLOCK, 0)
	if errno != 0 {
		return errno == syscall.ESRCH
	}
	file := os.NewFile(fd, "parent")
	defer file.Close()
	if os.Getppid() != parent {
		return true // it has already exited, and its pid may have been reused
	}
	raw, err := file.SyscallConn()
	if err != nil {
		return false
	}
	ended := false
	err = raw.Read(func(uintptr) bool {
		was := ended
		ended = true // the second call is made when the descriptor is readable: the process has exited
		return was
	})
	return err == nil
}
