//go:build !linux

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "soak: it needs Linux: a small disk that it can fill, and /proc for what it counts")
	os.Exit(1)
}
