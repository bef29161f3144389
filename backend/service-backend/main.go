// Command service-backend is the HTTP server, which is implemented in backend/server.
package main

import (
	"os"

	"github.com/service-dev/service/backend/server"
)

func main() { os.Exit(server.Main(os.Args[1:], os.Stdout, os.Stderr)) }
