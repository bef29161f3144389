package main

import (
	"os"
	"syscall"
)

// pollable returns a file that reads the same as in, if possible with the runtime's poller. A blocking read would keep
// the only processor of the runtime, and a response of the daemon would wait until the runtime takes it away.
//
// The poller needs O_NONBLOCK, which every descriptor of the open file then has. So pollable changes only a pipe or a
// socket, which an agent creates for one server, and only if it is none of outputs, whose writes have to block.
func pollable(in *os.File, outputs ...*os.File) *os.File {
	own, ok := status(in)
	if kind := own.Mode & syscall.S_IFMT; !ok || kind != syscall.S_IFIFO && kind != syscall.S_IFSOCK {
		return in
	}
	for _, out := range outputs {
		if other, ok := status(out); ok && other.Dev == own.Dev && other.Ino == own.Ino {
			return in
		}
	}
	if err := syscall.SetNonblock(int(in.Fd()), true); err != nil {
		return in
	}
	return os.NewFile(in.Fd(), in.Name())
}

func status(f *os.File) (s syscall.Stat_t, ok bool) {
	err := syscall.Fstat(int(f.Fd()), &s)
	return s, err == nil
}
