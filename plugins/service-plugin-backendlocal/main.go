// Command service-plugin-backendlocal is the adapter backendlocal as a separate program.
package main

import "github.com/service-dev/service/plugins/backendlocal"

func main() { backendlocal.Main() }
