package dialer

import (
	"os"
	"time"
)

// parentPoll is the interval between checks of the parent if the system cannot report its exit.
const parentPoll = 5 * time.Second

// AwaitParent returns when the process that started this one has exited. parent is the parent's process id at the
// start.
func AwaitParent(parent int) {
	if awaitExit(parent) {
		return
	}
	for os.Getppid() == parent {
		time.Sleep(parentPoll)
	}
}
