package dialer

import (
	"os"
	"time"
)

// parentPoll is the pause between checks of the parent where the system cannot report its end.
const parentPoll = 5 * time.Second

// AwaitParent returns when the process that started this one has ended. parent is its process id at the start.
func AwaitParent(parent int) {
	if awaitExit(parent) {
		return
	}
	for os.Getppid() == parent {
		time.Sleep(parentPoll)
	}
}
