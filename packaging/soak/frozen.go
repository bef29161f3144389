//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
)

// quietLog keeps what a server says about broken connections out of a run's output.
var quietLog = log.New(discard{}, "", 0)

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// freezeDaemon stops the daemon as SIGSTOP does. Half of the times a person cures it by a restart, else it goes on by
// itself.
func (s *soak) freezeDaemon(rng *rand.Rand) (string, func() error, error) {
	pids := s.pids("serviced")
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGSTOP) // one that has just ended is as good
	}
	if rng.IntN(2) == 0 {
		return fmt.Sprint(pids), func() error { return thaw(pids) }, nil
	}
	return fmt.Sprint(pids, " until restarted"), func() error {
		ctx, cancel := context.WithTimeout(context.Background(), callTime)
		defer cancel()
		out, err := s.command(ctx, "servicectl", "daemon", "restart").CombinedOutput()
		if err != nil {
			err = fmt.Errorf("servicectl daemon restart: %w: %s", err, out)
		}
		return errors.Join(err, thaw(pids))
	}, nil
}

// freezeAdapter stops one that runs. It is not thawed: the daemon has to notice and replace it.
func (s *soak) freezeAdapter(rng *rand.Rand) (string, func() error, error) {
	all := slices.DeleteFunc(s.processes(), func(p process) bool { return !strings.HasPrefix(p.name, "service-plugin-") })
	if len(all) == 0 {
		return "(none runs)", nil, nil
	}
	p := all[rng.IntN(len(all))]
	return strings.TrimPrefix(p.name, "service-plugin-"), func() error {
		if !eventually(replaced, func() bool { return !slices.Contains(s.pids(p.name), p.pid) }) {
			return errors.Join(fmt.Errorf("%s %d is stopped and still there after %s", p.name, p.pid, replaced), thaw([]int{p.pid}))
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
