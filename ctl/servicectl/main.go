// Command servicectl is the command line for users, implemented in ctl/internal/cli.
package main

import (
	"os"

	"github.com/service-dev/service/ctl/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args, os.Stdin, os.Stdout, os.Stderr)) }
