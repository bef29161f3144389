package checks

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// starters lists the packages that tests use to start processes.
var starters = []string{"os/exec", "github.com/chromedp/chromedp", module + "test/pgtest",
	module + "test/enginetest", module + "test/chromium",
	module + "test/glassestest/peripheral/frame", module + "test/usersystemd", module + "ctl/internal/dialer"}

// Processes started by a test must end with the test binary, so the TestMain of such packages uses the reaper.
func TestProcesses_EndWithTests(t *testing.T) {
	looked := 0
	for _, p := range packages(t) {
		imports := slices.Concat(p.Imports, p.TestImports, p.XTestImports)
		starts := p.ImportPath == module+"ctl/internal/dialer" ||
			slices.ContainsFunc(imports, func(path string) bool { return slices.Contains(starters, path) })
		files, err := filepath.Glob(filepath.Join(p.Dir, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		if !starts || len(files) == 0 {
			continue
		}
		looked++
		reaped := slices.ContainsFunc(files, func(file string) bool {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Error(err)
			}
			return strings.Contains(string(data), "os.Exit(reaper.Run(") ||
				strings.Contains(string(data), "os.Exit(Run(")
		})
		if !reaped {
			t.Errorf("tests of %s may start processes, but its TestMain does not use reaper.Run",
				strings.TrimPrefix(p.ImportPath, module))
		}
	}
	if looked < 15 {
		t.Errorf("checked only %d packages, want at least 15", looked)
	}
}
