package control

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
)

// errForeign is the refusal of another user, whatever the socket's mode has become (design D7).
var errForeign = errors.New("the caller is another user")

// CheckPeer refuses a connection over a Unix socket whose other end is not a process of this user. It is for every
// socket of the daemon.
func CheckPeer(conn net.Conn) error {
	raw, ok := conn.(syscall.Conn)
	if !ok {
		return errors.New("checking the caller: the connection tells nothing of its other end")
	}
	rc, err := raw.SyscallConn()
	if err != nil {
		return fmt.Errorf("checking the caller: %w", err)
	}
	var uid int
	var inner error
	if err := rc.Control(func(fd uintptr) { uid, inner = peerUID(fd) }); err != nil {
		return fmt.Errorf("checking the caller: %w", err)
	}
	if inner != nil {
		return fmt.Errorf("checking the caller: %w", inner)
	}
	if uid != os.Getuid() {
		return errForeign
	}
	return nil
}
