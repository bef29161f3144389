//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
)

// fault is one kind of fault. apply starts the fault and returns a description and undo, which ends the fault. undo
// is nil for faults that end by themselves.
type fault struct {
	name  string
	apply func(rng *rand.Rand) (what string, undo func() error, err error)
	// hold is the minimum duration. The actual duration is random and up to three times as long.
	hold time.Duration
	// allows lists the outcomes that the fault may cause, until the grace period after its end.
	allows []string
	grace  time.Duration
	// alone marks a fault that must not be combined with others.
	alone bool
	// rare marks a fault with long-lasting consequences, which occurs only once in four rounds.
	rare bool
	// kills marks a fault that ends the daemon.
	kills bool
}

// breakerTime is the minimum length of a run in which a circuit breaker may stay open for a minute.
const breakerTime = 5 * time.Minute

// replaced is the maximum time until the daemon has replaced a stopped adapter.
const replaced = 30 * time.Second

// gone lists the outcomes of calls to a daemon that is stopping. The doctor then reports problems.
var gone = []string{"daemon_restarted", "daemon_gone", "not running", unreachable, "something is wrong"}

// faults returns the faults that are possible on this machine.
func (s *soak) faults() []*fault {
	list := []*fault{
		{name: "daemon killed", apply: s.killDaemon, grace: 10 * time.Second, kills: true,
			allows: append([]string{"adapter_unavailable"}, gone...)},
		{name: "daemon stopped", apply: s.stopDaemon, grace: 10 * time.Second, kills: true,
			allows: append([]string{"adapter_unavailable", "cancelled"}, gone...)},
		{name: "backend killed", apply: s.killBackend, hold: 500 * time.Millisecond, grace: 10 * time.Second,
			allows: []string{"backend_unreachable", "link:unknown", "something is wrong"}},
		{name: "backend frozen", apply: s.freezeBackend, hold: 500 * time.Millisecond, grace: 10 * time.Second,
			allows: []string{"backend_unreachable", "link:unknown", "something is wrong"}},
		{name: "adapter killed", apply: s.killAdapter, grace: 15 * time.Second,
			allows: []string{"adapter_unavailable", "not_connected", "backend_unreachable", "link:unknown",
				"something is wrong"}},
		{name: "clock jumped", apply: s.jumpClock, hold: time.Second, grace: 2 * time.Second},
		{name: "auth.json rewritten by an editor", apply: s.rewriteAuth},
		{name: "auth.json cut short", apply: s.truncateAuth, hold: 500 * time.Millisecond, grace: 2 * time.Second,
			alone:  true,
			allows: []string{"link:corrupt", "auth_required", "something is wrong"}},
		{name: "auth.json removed", apply: s.removeAuth, hold: 500 * time.Millisecond, grace: 2 * time.Second, alone: true,
			allows: []string{"link:not_linked", "auth_required"}},
		{name: "auth.json of another account", apply: s.foreignAuth, hold: 500 * time.Millisecond, grace: 2 * time.Second,
			alone:  true,
			allows: []string{"link:other_account", "not_found"}},
	}
	list = append(list,
		&fault{name: "agents killed in mid-call", apply: s.killAgent},
		&fault{name: "login cut short", apply: s.cutLogin},
		&fault{name: "daemon upgraded", apply: s.upgrade, grace: 10 * time.Second, kills: true, alone: true,
			allows: append([]string{"adapter_unavailable", "cancelled"}, gone...)},
		&fault{name: "sockets deleted", apply: s.loseSockets, grace: 10 * time.Second, kills: true,
			allows: append([]string{"adapter_unavailable", "cancelled"}, gone...)})
	list = append(list,
		&fault{name: "daemon frozen", apply: s.freezeDaemon, hold: time.Second, grace: 15 * time.Second, kills: true,
			alone:  true,
			allows: append([]string{"adapter_unavailable", "cancelled", "daemon_not_responding"}, gone...)},
		&fault{name: "adapter frozen", apply: s.freezeAdapter, hold: time.Second, grace: 30 * time.Second, alone: true,
			allows: []string{"adapter_unavailable", "not_connected", "backend_unreachable", "link:unknown",
				"something is wrong"}},
		&fault{name: "hostile backend", apply: s.hostileBackend, grace: time.Second, alone: true},
		&fault{name: "client with a fast clock", apply: s.fastPoller, alone: true})
	if s.intruder != "" {
		list = append(list, &fault{name: "another user", apply: s.intrude})
	}
	if s.length >= breakerTime {
		list = append(list, &fault{name: "adapter killed until its breaker opens", apply: s.storm, grace: 75 * time.Second,
			alone: true, rare: true,
			allows: []string{"adapter_unavailable", "not_connected", "backend_unreachable", "link:unknown",
				"something is wrong"}})
	}
	if s.mounted {
		list = append(list, &fault{name: "disk full", apply: s.fillDisk, hold: time.Second, grace: 20 * time.Second,
			allows: []string{"state_unwritable", "daemon_unavailable", unreachable, "something is wrong"}},
			&fault{name: "disk full at approval", apply: s.noRoomForLink, grace: 20 * time.Second, alone: true,
				allows: []string{"state_unwritable", "daemon_unavailable", unreachable, "something is wrong", "link:revoked",
					"auth_required"}})
	}
	return list
}

// injectFaults applies faults until ctx ends: first each one once in random order, then at random, a third of them in
// pairs. Once calm is closed, it no longer ends the daemon, so that leaks of the last daemon are detected.
func (s *soak) injectFaults(ctx context.Context, calm <-chan struct{}) {
	rng := s.random(1)
	list := s.faults()
	var queue []*fault
	for ctx.Err() == nil {
		if len(queue) == 0 {
			queue = slices.DeleteFunc(slices.Clone(list), func(f *fault) bool { return f.rare && rng.IntN(4) != 0 })
			rng.Shuffle(len(queue), func(i, j int) { queue[i], queue[j] = queue[j], queue[i] })
		}
		now := queue[:1]
		if len(queue) > 1 && !queue[0].alone && !queue[1].alone && rng.IntN(3) == 0 {
			now = queue[:2]
		}
		queue = queue[len(now):]
		select {
		case <-calm:
			now = slices.DeleteFunc(slices.Clone(now), func(f *fault) bool { return f.kills })
		default:
		}
		if len(now) == 0 {
			continue
		}
		s.applyFaults(ctx, rng, now)
		pause(ctx, time.Duration(300+rng.IntN(1500))*time.Millisecond)
	}
}

// applyFaults applies the faults, keeps them active for a while, and ends them.
func (s *soak) applyFaults(ctx context.Context, rng *rand.Rand, now []*fault) {
	var undo []func()
	var told []string
	hold := time.Duration(0)
	for _, f := range now {
		end := s.activeFaults.begin(f)
		what, back, err := f.apply(rng)
		if err != nil {
			s.results.report("chaos: %s: %v", f.name, err)
			s.evidence()
		}
		s.results.fault(f.name)
		told = append(told, strings.TrimSpace(f.name+" "+what))
		undo = append(undo, func() {
			if back != nil {
				if err := back(); err != nil {
					s.results.report("chaos: ending %s: %v", f.name, err)
				}
			}
			end()
		})
		hold = max(hold, f.hold)
	}
	if hold > 0 {
		hold += time.Duration(rng.Int64N(2 * int64(hold)))
		pause(ctx, hold)
	}
	for _, u := range undo {
		u()
	}
	calls, errs, findings := s.results.sum()
	fmt.Printf("%6.1fs  %-64s %6d calls  %5d expected errors  %d findings\n",
		time.Since(s.results.began).Seconds(), strings.Join(told, " + "), calls, errs, findings)
}

// killDaemon kills the daemon, which cannot clean up.
func (s *soak) killDaemon(*rand.Rand) (string, func() error, error) {
	pids := s.pids("serviced")
	for _, pid := range pids {
		kill(pid)
	}
	return fmt.Sprint(pids), nil, nil
}

func (s *soak) stopDaemon(*rand.Rand) (string, func() error, error) {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	out, err := s.command(ctx, "servicectl", "daemon", "stop").CombinedOutput()
	var ended *exec.ExitError
	if errors.As(err, &ended) && ended.ExitCode() == 1 {
		err = nil // no daemon was running
	}
	if err != nil {
		err = fmt.Errorf("servicectl daemon stop: %w: %s", err, out)
	}
	return "", nil, err
}

func (s *soak) killBackend(*rand.Rand) (string, func() error, error) {
	s.backend.kill()
	return "", s.backend.start, nil
}

func (s *soak) freezeBackend(*rand.Rand) (string, func() error, error) {
	if s.backend.cmd == nil { // another fault already killed it
		return "(not there)", nil, nil
	}
	p := s.backend.cmd.Process
	return "", func() error {
		err := p.Signal(syscall.SIGCONT)
		if errors.Is(err, os.ErrProcessDone) {
			err = nil
		}
		return err
	}, p.Signal(syscall.SIGSTOP)
}

// anyAdapter returns a running adapter and its name in the list of faults.
func (s *soak) anyAdapter(rng *rand.Rand) (process, string) {
	all := slices.DeleteFunc(s.processes(), func(p process) bool { return !strings.HasPrefix(p.name, "service-plugin-") })
	if len(all) == 0 {
		return process{}, "(none runs)"
	}
	p := all[rng.IntN(len(all))]
	return p, strings.TrimPrefix(p.name, "service-plugin-")
}

func (s *soak) killAdapter(rng *rand.Rand) (string, func() error, error) {
	p, name := s.anyAdapter(rng)
	if p.pid == 0 {
		return name, nil, nil
	}
	kill(p.pid)
	return name, nil, nil
}
