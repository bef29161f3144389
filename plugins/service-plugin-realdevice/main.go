// Command service-plugin-realdevice is the adapter realdevice as a separate program.
package main

import "github.com/service-dev/service/plugins/realdevice"

func main() { realdevice.Main() }
