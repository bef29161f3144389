package control

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
)

// errForeign is the refusal of another user, whatever the socket's mode has become.
var errForeign = errors.New("the caller is another user")

// CheckPeer refuses a connection over a Unix socket whose other end is not a process of this user. It is for every
// socket of the daemon.
func CheckPeer(conn net.Conn) error {
	uid, _, err := peerAt(conn)
	if err != nil {
		return fmt.Errorf("checking the caller: %w", err)
	}
	if uid != os.Getuid() {
		return errForeign
	}
	return nil
}

// PeerProcess is the process at the other end of a Unix socket; 0 where that cannot be told.
func PeerProcess(conn net.Conn) int {
	_, pid, err := peerAt(conn)
	if err != nil {
		return 0
	}
	return pid
}

func peerAt(conn net.Conn) (uid, pid int, err error) {
	raw, ok := conn.(syscall.Conn)
	if !ok {
		return -1, 0, errors.New("the connection tells nothing of its other end")
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
