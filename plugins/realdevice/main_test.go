package realdevice

import (
	"flag"
	"os"
	"testing"

	"github.com/service-dev/service/test/reaper"
)

func TestMain(m *testing.M) {
	// The tests wait for scans, for retries of the radio and for each other's browsers.
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	os.Exit(reaper.Run(m.Run))
}
