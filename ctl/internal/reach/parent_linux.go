package reach

import (
	"os"
	"syscall"
)

// sysPidfdOpen has one number on every architecture.
const sysPidfdOpen = 434

// awaitExit waits for the end of the parent by a descriptor of it, which costs no thread; false when the system has none
// (before Linux 5.10, or in a sandbox). The signal that Linux can send at a parent's end is no way: it tells of the end
// of the thread that made this process.
func awaitExit(parent int) bool {
	fd, _, errno := syscall.Syscall(sysPidfdOpen, uintptr(parent), syscall.O_NONBLOCK, 0)
	if errno != 0 {
		return errno == syscall.ESRCH
	}
	file := os.NewFile(fd, "parent")
	defer file.Close()
	if os.Getppid() != parent {
		return true // it ended before, and its number may be another's
	}
	raw, err := file.SyscallConn()
	if err != nil {
		return false
	}
	ended := false
	err = raw.Read(func(uintptr) bool {
		was := ended
		ended = true // the second look comes when the descriptor is readable: the process has ended
		return was
	})
	return err == nil
}
