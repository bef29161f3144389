// Command service-plugin-browsersim is the adapter browsersim as a program of its own.
package main

import "github.com/service-dev/service/plugins/browsersim"

func main() { browsersim.Main() }
