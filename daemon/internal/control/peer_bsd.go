//go:build darwin || freebsd

package control

import "golang.org/x/sys/unix"

func peerOf(fd uintptr) (uid, pid int, err error) {
	cred, err := unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return -1, 0, err
	}
	return int(cred.Uid), peerPID(fd), nil
}
