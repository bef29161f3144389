//go:build !linux

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "soak requires Linux, for a small disk that it can fill and for /proc")
	os.Exit(1)
}
