//go:build !(js && wasm)

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "simulator runs only in a browser: build it with `make wasm`")
	os.Exit(2)
}
