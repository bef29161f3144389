package dialer

import (
	"errors"
	"os"
	"syscall"
)

// awaitExit waits with kqueue until the parent exits. It returns false if the system does not allow that.
func awaitExit(parent int) bool {
	queue, err := syscall.Kqueue()
	if err != nil {
		return false
	}
	defer func() { _ = syscall.Close(queue) }()
	syscall.CloseOnExec(queue)
	change := []syscall.Kevent_t{{Ident: uint64(parent), Filter: syscall.EVFILT_PROC,
		Flags: syscall.EV_ADD | syscall.EV_ONESHOT, Fflags: syscall.NOTE_EXIT}}
	if _, err := syscall.Kevent(queue, change, nil, nil); err != nil {
		return errors.Is(err, syscall.ESRCH)
	}
	if os.Getppid() != parent {
		return true // it has already exited, and its pid may have been reused
	}
	event := make([]syscall.Kevent_t, 1)
	for {
		n, err := syscall.Kevent(queue, nil, event, nil)
		if n > 0 || err != nil && !errors.Is(err, syscall.EINTR) {
			return n > 0
		}
	}
}
