package app

import (
	"context"
	"time"
)

// restEvery is how long nobody must have come or gone before memory goes back to the system.
const restEvery = 5 * time.Second

// rest calls free once after every time of coming and going: attaching takes many times the memory that a silent
// connection keeps, and the collector alone would hold on to it until the next rush. It returns when ctx ends.
func rest(ctx context.Context, tick <-chan time.Time, connections func() int, free func()) {
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
