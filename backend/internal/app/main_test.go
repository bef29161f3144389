package app

import (
	"os"
	"testing"

	"github.com/service-dev/service/packaging/enginetest"
	"github.com/service-dev/service/packaging/reaper"
)

func TestMain(m *testing.M) { os.Exit(reaper.Run(func() int { return enginetest.Run(m) })) }
