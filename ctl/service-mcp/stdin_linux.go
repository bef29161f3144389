package main

import (
	"os"
	"syscall"
	"time"
)

// pollable returns a file that reads the same data as in, using the runtime's poller if possible. A blocking read
// would occupy the runtime's only processor, and a response from the daemon would wait until the runtime reclaims it.
//
// The poller needs O_NONBLOCK, a flag of the open file that is visible to every process sharing the file. So pollable
// changes only a pipe or a socket, which an agent usually creates for one server, and only if it is not one of outputs,
// whose writes have to block. restore clears the flag again; if a signal ends this process, it stays set.
func pollable(in *os.File, outputs ...*os.File) (file *os.File, restore func()) {
	if usesPoller(in) || !isPrivate(in, outputs) {
		return in, func() {}
	}
	fd, err := syscall.Dup(int(in.Fd())) // in keeps its own descriptor
	if err != nil {
		return in, func() {}
	}
	syscall.CloseOnExec(fd)
	if err := syscall.SetNonblock(fd, true); err != nil {
		_ = syscall.Close(fd)
		return in, func() {}
	}
	restore = func() { _ = syscall.SetNonblock(int(in.Fd()), false) }
	if file = os.NewFile(uintptr(fd), in.Name()); !usesPoller(file) {
		restore()
		_ = file.Close()
		return in, func() {}
	}
	return file, restore
}

// usesPoller reports whether reads of a file use the runtime's poller. Only then can a deadline end them.
func usesPoller(f *os.File) bool { return f.SetReadDeadline(time.Time{}) == nil }

// isPrivate reports whether in is a pipe or a socket, and not one of outputs.
func isPrivate(in *os.File, outputs []*os.File) bool {
	own, err := status(in)
	if err != nil {
		return false
	}
	if kind := own.Mode & syscall.S_IFMT; kind != syscall.S_IFIFO && kind != syscall.S_IFSOCK {
		return false
	}
	for _, out := range outputs {
		if other, err := status(out); err == nil && other.Dev == own.Dev && other.Ino == own.Ino {
			return false
		}
	}
	return true
}

func status(f *os.File) (s syscall.Stat_t, err error) {
	err = syscall.Fstat(int(f.Fd()), &s)
	return s, err
}
