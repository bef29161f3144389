// Command service-plugin-realdevice is the adapter realdevice as a program of its own.
package main

import "github.com/service-dev/service/plugins/realdevice"

func main() { realdevice.Main() }
