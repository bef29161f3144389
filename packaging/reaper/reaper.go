// Package reaper ends the processes that a test binary started when that binary ends, however it ends: by returning, by
// a panic, by the limit of go test or by SIGKILL. A watchdog process, which holds one end of a pipe, does it. It also
// removes the binary's temporary files. It works on Linux, where the tests run; elsewhere it does nothing.
package reaper

import (
	"fmt"
	"os"
)

// variable tells a process that it is the watchdog, and of which directory.
const variable = "SERVICE_TEST_REAPER"

// A binary that imports this package becomes a watchdog before its main begins, as nothing else of it may run there.
func init() {
	if dir := os.Getenv(variable); dir != "" {
		guard(dir)
		os.Exit(0)
	}
}

// Run runs a binary's tests in a temporary directory of their own, and returns their exit code after whatever they
// started has ended. TestMain calls it: os.Exit(reaper.Run(m.Run)). Everything that a test starts has this directory in
// its environment or runs in or from it, which is how the watchdog knows it, children of children among it.
func Run(tests func() int) int {
	dir, err := os.MkdirTemp("", "r")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	// Tests start programs as other users, which must reach what is below.
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
