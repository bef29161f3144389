package control

import "golang.org/x/sys/unix"

// peerPID returns the pid of the socket's peer, or 0 if the system does not report it.
func peerPID(fd uintptr) int {
	pid, err := unix.GetsockoptInt(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERPID)
	if err != nil {
		return 0
	}
	return pid
}
