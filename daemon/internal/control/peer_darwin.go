package control

import "golang.org/x/sys/unix"

// peerPID is 0 when the system does not tell.
func peerPID(fd uintptr) int {
	pid, err := unix.GetsockoptInt(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERPID)
	if err != nil {
		return 0
	}
	return pid
}
