// Command manpages writes the man pages and completions of service-backend, for a release.
package main

import (
	"os"

	"github.com/service-dev/service/backend/server"
	"github.com/service-dev/service/internal/manpages"
)

func main() { manpages.Main(server.Root(os.Stderr)) }
