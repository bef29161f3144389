//go:build unix

package e2e

import (
	"testing"

	"github.com/service-dev/service/test/reaper"
)

// These tests mostly wait for other processes and for intervals, so run more of them in parallel than there are
// processors. A -parallel flag takes precedence because it is parsed later.
func init() {
	testing.Init()
	reaper.Parallel(8)
}
