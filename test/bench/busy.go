package main

import (
	"context"
	"fmt"
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
	// busyPause is the average pause of a background client between two calls. 64 clients make about 600 calls per
	// second, which is more than real agents make and less than two processors can serve.
	busyPause = 100 * time.Millisecond
	busyCalls = 1500 // round trips per figure
	fullTime  = time.Second
	fullRuns  = 7
)

// agentLines are clients that exchange lines with service-mcp processes or with the echo baseline.
type agentLines []*peer

// spawnAll starts n programs with spawn or spawnAgent.
func spawnAll(n int, start func(*exec.Cmd) (*peer, error), command func() *exec.Cmd) (agentLines, error) {
	var all agentLines
	for range n {
		p, err := start(command())
		if err != nil {
			all.close()
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

func (l agentLines) close() {
	for _, p := range l {
		p.close()
	}
}

func (b *bench) shimCommand() *exec.Cmd { return b.command("service-mcp") }

func busyCall(n int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"whoAmI","arguments":{}}}`, n+10)
}

// work runs during while every client makes calls, with pauses of the given average length. It returns the completed
// calls per second.
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

// busyWhoami measures `servicectl whoami` while 64 agents work, compared with an empty program under the same load
// and with itself without load.
func (b *bench) busyWhoami() error {
	agents, err := spawnAll(busyClients, spawnAgent, b.shimCommand)
	if err != nil {
		return err
	}
	defer agents.close()
	return b.idleAndBusy(agents, "servicectl whoami", "empty Go program", func(ours, empty *[]time.Duration) error {
		for range 2 * b.runs {
			if err := b.whoamiOnce(ours, empty); err != nil {
				return err
			}
		}
		return nil
	})
}

// idleAndBusy makes the same measurement while the agents are idle and while they work.
func (b *bench) idleAndBusy(agents agentLines, what, floorName string,
	measure func(ours, floor *[]time.Duration) error) error {
	var ours, floor, idle, idleFloor []time.Duration
	if err := measure(&idle, &idleFloor); err != nil {
		return err
	}
	rate, err := agents.work(busyPause, func() error { return measure(&ours, &floor) })
	if err != nil {
		return err
	}
	b.rows = append(b.rows,
		timesRow(what+", 64 agents idle / "+floorName, idle, idleFloor, spread, ""),
		timesRow(fmt.Sprintf("%s, 64 agents at %.0f calls/s / %s", what, rate, floorName), ours, floor, spread, ""))
	return nil
}

// busyTool measures the round trip of a tool call while 64 agents work, compared with a program that echoes lines
// under the same load. It also measures the throughput of 64 agents without pauses, compared with 64 in-process
// servers whose tools do nothing.
func (b *bench) busyTool() error {
	agents, err := spawnAll(busyClients+1, spawnAgent, b.shimCommand)
	if err != nil {
		return err
	}
	defer agents.close()
	echoes, err := spawnAll(1, spawn, func() *exec.Cmd { return exec.Command(filepath.Join(b.work, "echo")) })
	if err != nil {
		return err
	}
	defer echoes.close()
	err = b.idleAndBusy(agents[1:], "tool call (whoAmI)", "bare echo", func(ours, floor *[]time.Duration) error {
		return roundTrips(agents[0], echoes[0], ours, floor)
	})
	if err != nil {
		return err
	}
	return b.fullTools(agents[1:])
}

// fullTools measures how many calls per second are completed for agents that do not pause.
func (b *bench) fullTools(agents agentLines) error {
	inProcess, err := spawnAll(len(agents), spawnAgent, b.inProcess)
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
	b.rows = append(b.rows, ratesRow("tool calls of 64 agents without a pause / 64 in-process servers", o, f, ">= 0.70"))
	return nil
}

// roundTrips measures our program and the baseline alternately.
func roundTrips(ours, floor *peer, o, f *[]time.Duration) error {
	for n := range busyCalls {
		for _, side := range []struct {
			p    *peer
			kept *[]time.Duration
		}{{ours, o}, {floor, f}} {
			if err := measure(side.kept, func() error { return side.p.exchange(busyCall(n)) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// spread formats the median with the 99th percentile.
func spread(all []time.Duration) string {
	m := median(all) // median sorts
	return fmt.Sprintf("%s (99th %s)", ms(m), ms(all[len(all)*99/100]))
}
