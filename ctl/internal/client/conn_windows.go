package client

import (
	"fmt"
	"net"

	"github.com/service-dev/service/ctl/internal/reach"
)

func netConn(conn reach.Conn) (net.Conn, error) {
	if c, ok := conn.(net.Conn); ok {
		return c, nil
	}
	return nil, fmt.Errorf("using a connection of type %T", conn)
}
