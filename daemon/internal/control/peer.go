package control

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
)

// errOtherUser is returned for a process of another user, whatever the socket's mode.
var errOtherUser = errors.New("the calling process belongs to another user")

// CheckPeer returns an error unless the peer of a Unix socket connection is a process of this user. Every socket of the
// daemon uses it.
func CheckPeer(conn net.Conn) error {
	uid, _, err := peerOfConn(conn)
	if err != nil {
		return fmt.Errorf("identify the caller: %w", err)
	}
	if uid != os.Getuid() {
		return errOtherUser
	}
	return nil
}

// PeerProcess returns the process at the other end of a Unix socket, or 0 if unknown.
func PeerProcess(conn net.Conn) int {
	_, pid, err := peerOfConn(conn)
	if err != nil {
		return 0
	}
	return pid
}

func peerOfConn(conn net.Conn) (uid, pid int, err error) {
	raw, ok := conn.(syscall.Conn)
	if !ok {
		return -1, 0, errors.New("the connection does not identify its peer")
	}
	rc, err := raw.SyscallConn()
	if err != nil {
		return -1, 0, err
	}
	var inner error
	if err := rc.Control(func(fd uintptr) { uid, pid, inner = peerOf(fd) }); err != nil {
		return -1, 0, err
	}
	return uid, pid, inner
}
