package recipes

import (
	"os"
	"testing"

	"github.com/service-dev/service/test/reaper"
)

func TestMain(m *testing.M) { os.Exit(reaper.Run(m.Run)) }
