package app

import (
	"context"
	"slices"
	"sync"
)

// part is a piece of the daemon that runs until its context ends.
type part struct {
	name  string
	serve func(context.Context) error
}

// roll knows which parts run, so that one that does not end can be named.
type roll struct {
	mu    sync.Mutex
	names []string
}

// run serves a part until ctx ends.
func (r *roll) run(ctx context.Context, p part) error {
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

// left returns the names of the parts that run.
func (r *roll) left() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.names)
}
