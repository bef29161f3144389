// Command service-plugin-backendhttp is the adapter backendhttp as a separate program.
package main

import "github.com/service-dev/service/plugins/backendhttp"

func main() { backendhttp.Main() }
