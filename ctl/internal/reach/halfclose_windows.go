package reach

import "net"

// HalfClose says to the daemon that nothing more will be sent; its answers still arrive.
func HalfClose(conn Conn) error {
	if unix, ok := conn.(*net.UnixConn); ok {
		return unix.CloseWrite()
	}
	return nil
}
