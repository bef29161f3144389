package reach

import (
	"os"
	"time"
)

// parentPoll is how often the parent is looked for where the system cannot tell of its end.
const parentPoll = 5 * time.Second

// AwaitParent returns when the process that started this one has ended. parent is its number, read at the start.
func AwaitParent(parent int) {
	if awaitExit(parent) {
		return
	}
	for os.Getppid() == parent {
		time.Sleep(parentPoll)
	}
}
