// Command servicectl is the person's command line, implemented in ctl/internal/cli.
package main

import (
	"os"

	"github.com/service-dev/service/ctl/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args, os.Stdin, os.Stdout, os.Stderr)) }
