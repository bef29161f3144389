//go:build unix

package client

import (
	"fmt"
	"net"
	"os"

	"github.com/service-dev/service/ctl/internal/dialer"
)

// netConn wraps the dialer's descriptor for gRPC.
func netConn(conn dialer.Conn) (net.Conn, error) {
	file, ok := conn.(*os.File)
	if !ok {
		return nil, fmt.Errorf("use a connection of type %T", conn)
	}
	defer file.Close() // FileConn has a copy
	return net.FileConn(file)
}
