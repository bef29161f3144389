//go:build !(js && wasm)

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "simulator runs in a browser only: build it with `make wasm`")
	os.Exit(2)
}
