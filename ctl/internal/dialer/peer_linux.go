package dialer

import "syscall"

// peerUID returns the user who listens at the other end of a Unix socket. ok is false if the system does not report
// it.
func peerUID(fd int) (uid int, ok bool) {
	peer, err := syscall.GetsockoptUcred(fd, syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	if err != nil {
		return 0, false
	}
	return int(peer.Uid), true
}
