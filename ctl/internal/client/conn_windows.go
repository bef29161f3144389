package client

import (
	"fmt"
	"net"

	"github.com/service-dev/service/ctl/internal/dialer"
)

func netConn(conn dialer.Conn) (net.Conn, error) {
	if c, ok := conn.(net.Conn); ok {
		return c, nil
	}
	return nil, fmt.Errorf("unsupported connection type %T", conn)
}
