package app

import (
	"context"
	"slices"
	"sync"
)

// component is a part of the daemon that runs until its context ends.
type component struct {
	name  string
	serve func(context.Context) error
}

// componentTracker tracks the running components, so that a shutdown error can name those that did not stop.
type componentTracker struct {
	mu    sync.Mutex
	names []string
}

// run serves a component until ctx ends.
func (r *componentTracker) run(ctx context.Context, p component) error {
	r.mu.Lock()
	r.names = append(r.names, p.name)
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		i := slices.Index(r.names, p.name)
		r.names = slices.Delete(r.names, i, i+1)
	}()
	return p.serve(ctx)
}

// left returns the names of the components that are still running.
func (r *componentTracker) left() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.names)
}
