// Command service-plugin-backendhttp is the adapter backendhttp as a program of its own.
package main

import "github.com/service-dev/service/plugins/backendhttp"

func main() { backendhttp.Main() }
