package dialer

import "net"

// HalfClose closes the sending side of a connection. The other side can still send.
func HalfClose(conn Conn) error {
	if unix, ok := conn.(*net.UnixConn); ok {
		return unix.CloseWrite()
	}
	return nil
}
