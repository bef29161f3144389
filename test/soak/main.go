//go:build linux

// Command soak runs real programs, agents, terminals and apps that call models on a simulated machine, while seeded
// faults kill the daemon, the backend and adapters, fill the disk, move the clock and replace auth.json. It prints its
// counts and exits with 1 if a response was wrong, the link was lost, an amount of money differs, or something leaked.
// It uses only the programs' external interfaces; the daemon is a special build whose clock can be moved.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	agents    = 8
	terminals = 4
	apps      = 2 // attached to the browser sessions of the first agents
	// limit is the maximum time that a run may take in addition to its length.
	limit = 4 * time.Minute
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == intrudeCommand {
		if err := tryAll(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	bin := flag.String("bin", "bin", "where `make build` put the programs")
	length := flag.Duration("for", 10*time.Minute, "how long faults are injected")
	seed := flag.Uint64("seed", 0, "repeats the run with this seed; 0 picks a random one")
	postgres := flag.Bool("postgres", false, "the backend keeps its data in its own PostgreSQL server instead of "+
		"SQLite")
	race := flag.Bool("race", false, "build the daemon with the race detector")
	flag.Parse()
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())%1_000_000_000 + 1
	}
	o := options{bin: *bin, length: *length, seed: *seed, postgres: *postgres, race: *race}
	fmt.Printf("soak: %d agents and %d terminals, %s of faults, seed %d\n", agents, terminals, *length, *seed)
	good, err := run(o)
	if err != nil {
		fmt.Fprintf(os.Stderr, "soak: %v; again: %s\n", err, o)
	}
	if err != nil || !good {
		os.Exit(1)
	}
}

// options are the parameters of a run.
type options struct {
	bin            string
	length         time.Duration
	seed           uint64
	postgres, race bool
}

// String returns the command that repeats the run.
func (o options) String() string {
	text := fmt.Sprintf("make soak FOR=%s SEED=%d", o.length, o.seed)
	var args []string
	if o.postgres {
		args = append(args, "-postgres")
	}
	if o.race {
		args = append(args, "-race")
	}
	if len(args) > 0 {
		text += " ARGS='" + strings.Join(args, " ") + "'"
	}
	return text
}

// run runs one soak, from an empty machine to the table of results.
func run(o options) (good bool, err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeoutCause(ctx, o.length+limit, errors.New("the run did not end in time"))
	defer cancel()
	l := newResults()
	w, err := newTestbed(o.bin, o.race, l)
	if w != nil {
		defer w.remove()
	}
	if err != nil {
		return false, err
	}
	stopDatabase, err := w.newBackend(o.postgres)
	if stopDatabase != nil {
		defer stopDatabase()
	}
	if err != nil {
		return false, err
	}
	s := &soak{testbed: w, options: o, stderrLog: stderrLog{path: filepath.Join(w.state, "log", "serviced.stderr")}}
	before, err := s.prepare()
	if err != nil {
		return false, err
	}
	s.workUnderFaults(ctx)
	if err := s.evaluate(before); err != nil {
		s.keepLogs()
		return false, err
	}
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	if l.print(o.String()) {
		return true, nil
	}
	s.keepLogs()
	return false, nil
}

// prepare links the machine, uses everything once, and stops everything. It returns the files that exist afterwards.
func (s *soak) prepare() (files []string, err error) {
	for _, step := range []func() error{s.configure, s.link, s.startApps, s.connect, s.useEverything} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	s.disconnect()
	if _, err := s.run("daemon", "stop"); err != nil {
		return nil, err
	}
	if !eventually(10*time.Second, func() bool { return len(s.pids("serviced"))+len(s.pids("service-plugin-")) == 0 }) {
		return nil, fmt.Errorf("processes still running after the stop: %v", s.processes())
	}
	files = s.tree()
	return files, s.connect()
}

// connect starts the agents, half of them for each protocol revision.
func (s *soak) connect() error {
	s.agents = nil
	for n := range agents {
		era := []string{"old", "modern"}[n%2]
		a, err := newAgent(fmt.Sprintf("agent %d (%s)", n, era), n%2 == 1, s.command(context.Background(), "service-mcp"),
			s.results)
		if err != nil {
			return err
		}
		s.agents = append(s.agents, a)
	}
	return nil
}

func (s *soak) disconnect() {
	for _, a := range s.agents {
		if err := a.close(); err != nil {
			s.results.report("%s: %v", a.name, err)
		}
	}
	s.agents = nil
}

// useEverything makes each agent use each feature once. Every call must succeed.
func (s *soak) useEverything() error {
	for n, a := range s.agents {
		for tool, args := range map[string]map[string]any{
			"whoAmI":                 {},
			"createSimulatorSession": {"project": fmt.Sprintf("com.example.soak%d", n), "openBrowser": false},
			"startLocalSimulation":   {"project": fmt.Sprintf("com.example.local%d", n)},
		} {
			answer, outcome, err := a.call(tool, args)
			if err != nil {
				return fmt.Errorf("%s: %s: %w", a.name, tool, err)
			}
			if outcome != ok {
				return fmt.Errorf("%s: %s failed without a fault: %s %v", a.name, tool, outcome, answer)
			}
			if tool == "whoAmI" && text(answer, "accountId") != s.account {
				return fmt.Errorf("%s: linked to %v, want %s", a.name, answer["accountId"], s.account)
			}
		}
	}
	return nil
}

// workUnderFaults lets agents and terminals work during faults until the time is up.
func (s *soak) workUnderFaults(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, s.length)
	defer cancel()
	calm := make(chan struct{})
	timer := time.AfterFunc(s.length*4/5, func() { close(calm) })
	defer timer.Stop()
	for n, a := range s.agents {
		h := &worker{soak: s, a: a, rng: s.random(uint64(100 + n)), n: n, requests: map[string]int{}}
		if n < apps {
			h.app = &app{soak: s, name: fmt.Sprintf("app %d", n), acked: map[string]bool{}}
		}
		s.workers = append(s.workers, h)
	}
	for n := range terminals {
		s.terminals = append(s.terminals, &terminal{soak: s, name: fmt.Sprintf("terminal %d", n),
			rng: s.random(uint64(200 + n))})
	}
	s.work(func() {
		var others sync.WaitGroup
		others.Go(func() { s.stallReaders(ctx) })
		others.Go(func() { s.watchMemory(ctx) })
		s.injectFaults(ctx, calm)
		others.Wait() // until the time is up
	})
}

// work lets every agent and terminal work while during runs.
func (s *soak) work(during func()) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var all sync.WaitGroup
	all.Go(func() { s.stderrLog.follow(ctx) })
	for _, h := range s.workers {
		all.Go(func() { h.work(ctx) })
		if h.app != nil {
			all.Go(func() { h.app.work(ctx) })
		}
	}
	for _, c := range s.terminals {
		all.Go(func() { c.work(ctx) })
	}
	for _, a := range s.gateway.apps {
		all.Go(func() { a.work(ctx) })
	}
	all.Go(func() { s.gateway.greedy.work(ctx) })
	all.Go(func() { s.checkLedger(ctx) })
	during()
	stop()
	all.Wait()
	// Pooled connections would count as the backend's.
	s.provider.CloseIdle()
	for _, who := range append(slices.Clone(s.people), s.greedyOwner) {
		who.Browser.Client().CloseIdleConnections()
	}
}

// workWithoutFaults measures the resources of the processes after work without faults.
func (s *soak) workWithoutFaults(length time.Duration) { s.work(func() { time.Sleep(length) }) }
