package pluginhost

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
)

// dialAll connects to the sockets as another user and prints the results.
func dialAll(paths []string) {
	for _, path := range paths {
		conn, err := net.Dial("unix", path)
		switch {
		case err == nil:
			conn.Close()
			fmt.Println("connected to", path)
		case errors.Is(err, fs.ErrPermission):
			fmt.Println("permission denied")
		default:
			fmt.Println(err)
		}
	}
}
