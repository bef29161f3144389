package dialer

import "golang.org/x/sys/unix"

// peerUID returns the user who listens at the other end of a Unix socket. ok is false if the system does not report
// it.
func peerUID(fd int) (uid int, ok bool) {
	peer, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return 0, false
	}
	return int(peer.Uid), true
}
