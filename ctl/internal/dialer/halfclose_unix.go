//go:build unix

package dialer

import (
	"os"
	"syscall"
)

// HalfClose closes the sending side of a connection. The other side can still send.
func HalfClose(conn Conn) error {
	file, ok := conn.(*os.File)
	if !ok {
		return nil
	}
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var shutErr error
	if err := raw.Control(func(fd uintptr) { shutErr = syscall.Shutdown(int(fd), syscall.SHUT_WR) }); err != nil {
		return err
	}
	return shutErr
}
