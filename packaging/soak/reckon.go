//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// recovery is how long everything may take to work again by itself: the breaker of an adapter stays open for a minute.
const recovery = 75 * time.Second

// reckon looks, after the last fault, whether all is as it was: the link, every agent, and what the processes hold.
func (s *soak) reckon(before []string) error {
	fmt.Println("the last fault is over: looking for what is lost or left")
	if !eventually(recovery, func() bool { return s.everything() == nil }) {
		return fmt.Errorf("%s after the last fault: %w", recovery, s.everything())
	}
	for _, h := range s.working {
		h.readToEnd()
	}
	s.ledger.note("agents linked and served after the last fault", fmt.Sprintf("%d of %d", len(s.agents), agents))
	daemon, err := s.onlyDaemon()
	if err != nil {
		return err
	}
	after, stacks := s.settled(daemon, true)
	served, _ := s.settled(s.backend.cmd.Process.Pid, false)
	adapters := s.adapters()
	shims := s.shims()
	if _, err := s.run("daemon", "stop"); err != nil {
		return err
	}
	s.backend.kill()
	if err := s.backend.start(); err != nil {
		return err
	}
	if !eventually(recovery, func() bool { return s.everything() == nil }) {
		return fmt.Errorf("%s after a new daemon and backend: %w", recovery, s.everything())
	}
	if daemon, err = s.onlyDaemon(); err != nil {
		return err
	}
	s.quietWork(5 * time.Second)
	fresh, _ := s.settled(daemon, true)
	anew, _ := s.settled(s.backend.cmd.Process.Pid, false)
	s.compare("the daemon", after, fresh, slack, stacks)
	for name, held := range s.adapters() {
		if before, ran := adapters[name]; ran {
			s.compare("adapter "+name, before, held, slack, nil)
		}
	}
	if s.postgres {
		s.compare("the backend", served, anew, slackPostgres, nil)
	} else {
		s.compare("the backend, without its database", served, anew, slack, nil)
	}
	return s.end(before, shims)
}

// onlyDaemon is the process of the one daemon there is. One that has ended may take a moment to be gone: the race
// detector waits for a second.
func (s *soak) onlyDaemon() (pid int, err error) {
	var daemons []int
	if !eventually(5*time.Second, func() bool { daemons = s.pids("serviced"); return len(daemons) == 1 }) {
		s.evidence()
		return 0, fmt.Errorf("%d daemons run: %v", len(daemons), daemons)
	}
	return daemons[0], nil
}

// adapters is what each adapter that runs holds.
func (s *soak) adapters() map[string]holding {
	held := map[string]holding{}
	for _, p := range s.processes() {
		if name, is := strings.CutPrefix(p.name, "service-plugin-"); is {
			held[name], _ = s.settled(p.pid, false)
		}
	}
	return held
}

// shims are the descriptors of each agent's shim, which lived through everything.
func (s *soak) shims() map[string]int {
	held := map[string]int{}
	for _, a := range s.agents {
		held[a.name] = descriptors(a.cmd.Process.Pid)
	}
	return held
}

// end closes everything in order and looks at what is left.
func (s *soak) end(before []string, shims map[string]int) error {
	fresh, err := newAgent("a fresh agent", false, s.command(context.Background(), "service-mcp"), s.ledger)
	if err != nil {
		return err
	}
	want, most := descriptors(fresh.cmd.Process.Pid), 0
	if err := fresh.close(); err != nil {
		return err
	}
	for name, n := range shims {
		if most = max(most, n); n > want+1 { // one that started the daemon holds its descriptor
			s.ledger.find("the shim of %s holds %d descriptors, a fresh one %d", name, n, want)
		}
	}
	s.ledger.note("the shims, which lived through everything", fmt.Sprintf("at most %d descriptors; a fresh one %d", most, want))
	s.disconnect()
	if _, err := s.run("daemon", "stop"); err != nil {
		return err
	}
	s.backend.kill()
	if !eventually(10*time.Second, func() bool { return len(s.processes()) == 0 }) {
		s.ledger.find("still running at the end: %v", s.processes())
	}
	s.ledger.note("processes at the end", fmt.Sprint(len(s.processes())))
	s.left(before)
	s.lastWords()
	return nil
}

// lastWords looks for what only a daemon that broke writes: a panic, a fatal error, a data race.
func (s *soak) lastWords() {
	data, err := os.ReadFile(filepath.Join(s.state, "log", "serviced.stderr"))
	if err != nil {
		return
	}
	for _, word := range []string{"panic:", "fatal error:", "WARNING: DATA RACE"} {
		if n := strings.Count(string(data), word); n > 0 {
			s.ledger.find("daemons ended or went on with %q, %d times: see serviced.stderr", word, n)
		}
	}
	s.ledger.note("daemons' last words", fmt.Sprintf("%d bytes", len(data)))
}

// keepLogs saves what the daemon and the backend logged, for whoever looks into the findings.
func (s *soak) keepLogs() {
	for _, path := range []string{filepath.Join(s.state, "log", "serviced.log"), filepath.Join(s.state, "log", "serviced.stderr"), s.backend.logs} {
		if data, err := os.ReadFile(path); err == nil {
			keep(filepath.Base(path), data)
		}
	}
}
