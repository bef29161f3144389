package realdevice

import (
	"os"
	"testing"

	"github.com/service-dev/service/test/reaper"
)

func TestMain(m *testing.M) {
	// The tests wait for scans, for retries of the radio and for each other's browsers.
	reaper.Parallel(16)
	os.Exit(reaper.Run(m.Run))
}
