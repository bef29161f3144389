// Package reaper ends the processes that a test binary started as soon as the binary ends, whether it returns,
// panics, exceeds the time limit of go test or is killed. A watchdog process, connected by a pipe, ends them and
// removes the binary's temporary files. It works on Linux, where the tests run; on other systems the package does
// nothing.
package reaper

import (
	"flag"
	"fmt"
	"os"
	"strconv"
)

// variable is the environment variable that makes a process act as a watchdog. Its value is the directory to watch.
const variable = "SERVICE_TEST_REAPER"

// MachineTempDir is the temporary directory that all test binaries share. Run replaces it with a subdirectory for its
// own binary.
var MachineTempDir = os.TempDir()

// A binary that imports this package may be started as a watchdog, and must not run its main function then.
func init() {
	if dir := os.Getenv(variable); dir != "" {
		guard(dir)
		os.Exit(0)
	}
}

// Parallel lets n parallel tests of the binary run at the same time, however many processors there are, because most of
// these tests wait for processes. Call it before the flags are parsed, so that -parallel takes precedence.
func Parallel(n int) {
	if err := flag.Set("test.parallel", strconv.Itoa(n)); err != nil {
		panic(err) // only a test binary has this flag
	}
}

// Run runs a binary's tests in a new temporary directory, ends all processes that they started, and returns the exit
// code of the tests. Call it in TestMain: os.Exit(reaper.Run(m.Run)). The watchdog recognises the processes,
// including descendants, by this directory in their environment, program path or working directory.
func Run(tests func() int) int {
	dir, err := os.MkdirTemp("", "r")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	// Tests run programs as other users, who must be able to enter the directory.
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
