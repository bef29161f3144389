//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"math/rand/v2"
	"slices"
	"syscall"
)

// quietLog discards a server's messages about broken connections.
var quietLog = log.New(discard{}, "", 0)

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// freezeDaemon stops the daemon with SIGSTOP. It then continues the daemon with SIGCONT or, half of the time,
// replaces it with a restart. It does not stop children: a child that is stopped before it runs the adapter's program
// would keep the daemon's lock, and the restart, which kills only the daemon, would fail.
func (s *soak) freezeDaemon(rng *rand.Rand) (string, func() error, error) {
	pids := s.daemons()
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGSTOP) // the process may have just exited
	}
	if rng.IntN(2) == 0 {
		return fmt.Sprint(pids), func() error { return thaw(pids) }, nil
	}
	return fmt.Sprint(pids, " until restarted"), func() error {
		ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
		defer cancel()
		out, err := s.command(ctx, "servicectl", "daemon", "restart").CombinedOutput()
		if err != nil {
			err = fmt.Errorf("servicectl daemon restart: %w: %s", err, out)
		}
		return errors.Join(err, thaw(pids))
	}, nil
}

// freezeAdapter stops a running adapter permanently. The daemon must notice and replace it.
func (s *soak) freezeAdapter(rng *rand.Rand) (string, func() error, error) {
	p, name := s.anyAdapter(rng)
	if p.pid == 0 {
		return name, nil, nil
	}
	return name, func() error {
		if !eventually(replaced, func() bool { return !slices.Contains(s.pids(p.name), p.pid) }) {
			return errors.Join(fmt.Errorf("stopped adapter %s %d was not replaced within %s", p.name, p.pid, replaced),
				thaw([]int{p.pid}))
		}
		return nil
	}, syscall.Kill(p.pid, syscall.SIGSTOP)
}

func thaw(pids []int) error {
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGCONT); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
	}
	return nil
}
