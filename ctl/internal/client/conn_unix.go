//go:build unix

package client

import (
	"fmt"
	"net"
	"os"

	"github.com/service-dev/service/ctl/internal/dialer"
)

// netConn converts the dialer's connection to a net.Conn.
func netConn(conn dialer.Conn) (net.Conn, error) {
	file, ok := conn.(*os.File)
	if !ok {
		return nil, fmt.Errorf("unsupported connection type %T", conn)
	}
	defer file.Close() // FileConn duplicates the descriptor
	return net.FileConn(file)
}
