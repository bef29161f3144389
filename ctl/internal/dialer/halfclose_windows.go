package dialer

import "net"

// HalfClose closes the sending side of a connection. Answers still arrive.
func HalfClose(conn Conn) error {
	if unix, ok := conn.(*net.UnixConn); ok {
		return unix.CloseWrite()
	}
	return nil
}
