package app

import (
	"context"
	"time"
)

// idleInterval is how long the number of connections must stay the same before unused memory is returned to the system.
const idleInterval = 5 * time.Second

// freeIdleMemory calls free once after each burst of opened or closed connections. Attaching needs many times the
// memory of an idle connection, and the garbage collector alone would not return it. freeIdleMemory returns when ctx
// ends.
func freeIdleMemory(ctx context.Context, tick <-chan time.Time, connections func() int, free func()) {
	last, freed := connections(), connections()
	for {
		select {
		case <-tick:
		case <-ctx.Done():
			return
		}
		now := connections()
		if now == last && now != freed {
			free()
			freed = now
		}
		last = now
	}
}
