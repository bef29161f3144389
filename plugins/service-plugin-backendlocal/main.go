// Command service-plugin-backendlocal is the adapter backendlocal as a program of its own.
package main

import "github.com/service-dev/service/plugins/backendlocal"

func main() { backendlocal.Main() }
