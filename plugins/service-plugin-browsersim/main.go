// Command service-plugin-browsersim is the adapter browsersim as a separate program.
package main

import "github.com/service-dev/service/plugins/browsersim"

func main() { browsersim.Main() }
