//go:build unix

package e2e

import (
	"flag"
	"testing"
)

// These tests mostly wait for other processes and for intervals, so run more of them in parallel than there are
// processors. A -parallel flag takes precedence because it is parsed later.
func init() {
	testing.Init()
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
}
