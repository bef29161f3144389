// Package reaper ends the processes that a test binary started as soon as the binary ends, whether it returns, panics,
// exceeds the time limit of go test or is killed. A watchdog process at the other end of a pipe ends them and removes
// the binary's temporary files. It works on Linux, where the tests run; on other systems it does nothing.
package reaper

import (
	"fmt"
	"os"
)

// variable is the environment variable that makes a process a watchdog. It contains the directory to watch.
const variable = "SERVICE_TEST_REAPER"

// MachineTempDir is the temporary directory that all test binaries share. Run replaces it, for its binary, by one
// below.
var MachineTempDir = os.TempDir()

// A binary that imports this package may run as a watchdog, which must not run its main function.
func init() {
	if dir := os.Getenv(variable); dir != "" {
		guard(dir)
		os.Exit(0)
	}
}

// Run runs a binary's tests in a new temporary directory, ends all processes that they started, and returns their exit
// code. Call it in TestMain: os.Exit(reaper.Run(m.Run)). The watchdog recognises test processes, including
// descendants, by this directory in their environment, program path or working directory.
func Run(tests func() int) int {
	dir, err := os.MkdirTemp("", "r")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	// Tests run programs as other users, which must be able to enter the directory.
	if err := os.Chmod(dir, 0o755); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	release, err := Watch(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer release()
	if err := os.Setenv("TMPDIR", dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return tests()
}
