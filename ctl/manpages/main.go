// Command manpages writes the man pages and completions of servicectl, for a release.
package main

import (
	"github.com/service-dev/service/ctl/internal/cli"
	"github.com/service-dev/service/internal/manpages"
)

func main() { manpages.Main(cli.Root("servicectl")) }
