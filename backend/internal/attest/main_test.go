package attest_test

import (
	"os"
	"testing"

	"github.com/service-dev/service/test/enginetest"
	"github.com/service-dev/service/test/reaper"
)

func TestMain(m *testing.M) { os.Exit(reaper.Run(func() int { return enginetest.Run(m) })) }
