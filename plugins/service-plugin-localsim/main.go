// Command service-plugin-localsim is the adapter localsim as a separate program.
package main

import "github.com/service-dev/service/plugins/localsim"

func main() { localsim.Main() }
