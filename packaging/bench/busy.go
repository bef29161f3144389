package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	busyClients = 64
	// busyPause is how long a client of the background waits between two calls, on average: 64 of them make some 600
	// calls a second, more than agents do and less than what two processors can answer.
	busyPause = 100 * time.Millisecond
	busyCalls = 1500 // round trips of one figure
	fullTime  = time.Second
	fullRuns  = 7
)

// agentLines are clients that talk to programs line by line: our shims, or the echo.
type agentLines []*peer

// spawnAll starts n programs. Those that speak MCP are greeted.
func (b *bench) spawnAll(n int, command func() *exec.Cmd, mcp bool) (agentLines, error) {
	var all agentLines
	for range n {
		p, err := spawn(command())
		if err != nil {
			all.close()
			return nil, err
		}
		all = append(all, p)
		if !mcp {
			continue
		}
		if _, err := p.ask(initialize); err != nil {
			all.close()
			return nil, fmt.Errorf("initialize: %w", err)
		}
		io.WriteString(p.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
	}
	return all, nil
}

func (l agentLines) close() {
	for _, p := range l {
		p.close()
	}
}

func busyCall(n int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"whoAmI","arguments":{}}}`, n+10)
}

// work lets every client call while during runs, with pauses of this length on average, and gives the answers a second.
func (l agentLines) work(pause time.Duration, during func() error) (perSecond float64, err error) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var answers atomic.Int64
	failed := make(chan error, len(l))
	var all sync.WaitGroup
	start := time.Now()
	for i, p := range l {
		rng := rand.New(rand.NewPCG(1, uint64(i)))
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				if _, err := p.ask(busyCall(n)); err != nil {
					failed <- err
					return
				}
				answers.Add(1)
				if pause > 0 {
					time.Sleep(time.Duration(rng.Int64N(int64(2 * pause))))
				}
			}
		})
	}
	err = during()
	perSecond = float64(answers.Load()) / time.Since(start).Seconds()
	stop()
	all.Wait()
	select {
	case e := <-failed:
		return 0, e
	default:
		return perSecond, err
	}
}

// busyWhoami measures the CLI's commonest question while 64 agents work, against an empty program beside it and
// against itself when nobody works.
func (b *bench) busyWhoami() error {
	agents, err := b.spawnAll(busyClients, func() *exec.Cmd { return b.command("service-mcp") }, true)
	if err != nil {
		return err
	}
	defer agents.close()
	measure := func(ours, empty *[]time.Duration) func() error {
		return func() error {
			for range 2 * b.runs {
				d, err := timed(func() error { return exec.Command(filepath.Join(b.work, "empty")).Run() })
				if err != nil {
					return err
				}
				*empty = append(*empty, d)
				d, _ = timed(func() error { return b.command("servicectl", "whoami").Run() }) // exit 1: not linked
				*ours = append(*ours, d)
			}
			return nil
		}
	}
	var ours, empty, idle, idleEmpty []time.Duration
	if err := measure(&idle, &idleEmpty)(); err != nil {
		return err
	}
	rate, err := agents.work(busyPause, measure(&ours, &empty))
	if err != nil {
		return err
	}
	o, e := median(ours), median(empty)
	b.rows = append(b.rows,
		row{"servicectl whoami, 64 agents idle / empty Go program", spread(idle), spread(idleEmpty), ratio(float64(median(idle)), float64(median(idleEmpty))), ""},
		row{fmt.Sprintf("servicectl whoami, 64 agents at %.0f calls/s / empty Go program", rate), spread(ours), spread(empty), ratio(float64(o), float64(e)), ""})
	return nil
}

// busyTool measures a tool call's round trip while 64 agents work, against a program that echoes lines beside it, and
// how many calls 64 agents without a pause get answered, against 64 in-process servers whose tools do nothing.
func (b *bench) busyTool() error {
	agents, err := b.spawnAll(busyClients+1, func() *exec.Cmd { return b.command("service-mcp") }, true)
	if err != nil {
		return err
	}
	defer agents.close()
	echoes, err := b.spawnAll(1, func() *exec.Cmd { return exec.Command(filepath.Join(b.work, "echo")) }, false)
	if err != nil {
		return err
	}
	defer echoes.close()
	var ours, floor, idle, idleFloor []time.Duration
	if err := roundTrips(agents[0], echoes[0], &idle, &idleFloor); err != nil {
		return err
	}
	rate, err := agents[1:].work(busyPause, func() error { return roundTrips(agents[0], echoes[0], &ours, &floor) })
	if err != nil {
		return err
	}
	b.rows = append(b.rows,
		row{"tool call (whoAmI), 64 agents idle / bare echo", spread(idle), spread(idleFloor), ratio(float64(median(idle)), float64(median(idleFloor))), ""},
		row{fmt.Sprintf("tool call (whoAmI), 64 agents at %.0f calls/s / bare echo", rate), spread(ours), spread(floor), ratio(float64(median(ours)), float64(median(floor))), ""})
	return b.fullTools(agents[1:])
}

// fullTools measures how many calls agents without a pause get answered.
func (b *bench) fullTools(agents agentLines) error {
	inProcess, err := b.spawnAll(len(agents), func() *exec.Cmd {
		return exec.Command(filepath.Join(b.work, "inprocess"), filepath.Join(b.work, "tools.json"))
	}, true)
	if err != nil {
		return err
	}
	defer inProcess.close()
	full := func() error { time.Sleep(fullTime); return nil }
	var ours, floor []float64
	for range fullRuns {
		o, err := agents.work(0, full)
		if err != nil {
			return err
		}
		f, err := inProcess.work(0, full)
		if err != nil {
			return err
		}
		ours, floor = append(ours, o), append(floor, f)
	}
	slices.Sort(ours)
	slices.Sort(floor)
	o, f := ours[fullRuns/2], floor[fullRuns/2]
	b.rows = append(b.rows, row{"tool calls of 64 agents without a pause / 64 in-process servers",
		fmt.Sprintf("%.0f /s", o), fmt.Sprintf("%.0f /s", f), ratio(o, f), ""})
	return nil
}

// roundTrips asks ours and the floor in turn.
func roundTrips(ours, floor *peer, o, f *[]time.Duration) error {
	for n := range busyCalls {
		for _, side := range []struct {
			p    *peer
			kept *[]time.Duration
		}{{ours, o}, {floor, f}} {
			d, err := timed(func() error {
				_, err := side.p.ask(busyCall(n))
				return err
			})
			if err != nil {
				return err
			}
			*side.kept = append(*side.kept, d)
		}
	}
	return nil
}

// spread is the median with the 99th percentile.
func spread(all []time.Duration) string {
	m := median(all) // sorts
	return fmt.Sprintf("%s (99th %s)", ms(m), ms(all[len(all)*99/100]))
}
