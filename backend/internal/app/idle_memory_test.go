package app

import (
	"context"
	"sync"
	"testing"
	"time"
)

func TestFreeIdleMemory_WaitsUntilConnectionsAreStable(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	tick, freed := make(chan time.Time), 0
	counts := []int{0, 0, 10, 20, 20, 20, 20, 0, 0, 0}
	next := func() int {
		c := counts[0]
		counts = counts[1:]
		return c
	}
	var wg sync.WaitGroup
	wg.Go(func() { freeIdleMemory(ctx, tick, next, func() { freed++ }) })
	for range 8 { // the first two of the ten counts are read before the first tick
		tick <- time.Time{}
	}
	cancel()
	wg.Wait()
	if freed != 2 {
		t.Errorf("freed %d times, want once after connections opened and once after they closed", freed)
	}
}
