//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// recovery is the maximum time that the service may take to recover. The circuit breaker of an adapter stays open for
// a minute.
const recovery = 75 * time.Second

// evaluate checks that link, agents and processes are unchanged after the last fault.
func (s *soak) evaluate(before []string) error {
	fmt.Println("the last fault is over: checking for lost data and leaks")
	if err := s.awaitRecovery("the last fault"); err != nil {
		return err
	}
	for _, h := range s.workers {
		h.readToEnd()
	}
	s.results.note("agents linked and served after the last fault", fmt.Sprintf("%d of %d", len(s.agents), agents))
	daemon, err := s.onlyDaemon()
	if err != nil {
		return err
	}
	after, stacks := s.settled("the daemon", daemon, true)
	served, _ := s.settled("the backend", s.backend.cmd.Process.Pid, false)
	if rest := residentMemory(s.backend.cmd.Process.Pid); rest > restMemory {
		s.results.report("the backend takes %d MB of memory at rest, want at most %d MB", rest>>10, restMemory>>10)
	}
	adapters := s.adapters()
	shims := s.shims()
	if _, err := s.run("daemon", "stop"); err != nil {
		return err
	}
	s.backend.kill()
	if err := s.backend.start(); err != nil {
		return err
	}
	if err := s.awaitRecovery("a new daemon and backend"); err != nil {
		return err
	}
	if daemon, err = s.onlyDaemon(); err != nil {
		return err
	}
	s.workWithoutFaults(5 * time.Second)
	fresh, _ := s.settled("the daemon", daemon, true)
	anew, _ := s.settled("the backend", s.backend.cmd.Process.Pid, false)
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
	s.compareMoney()
	return s.end(before, shims)
}

// awaitRecovery waits until everything works again.
func (s *soak) awaitRecovery(from string) (err error) {
	if !eventually(recovery, func() bool { err = s.useEverything(); return err == nil }) {
		return fmt.Errorf("%s after %s: %w", recovery, from, err)
	}
	return nil
}

// onlyDaemon returns the process of the only daemon. A stopped daemon may take a moment to exit, because the race
// detector waits for a second.
func (s *soak) onlyDaemon() (pid int, err error) {
	var daemons []int
	if !eventually(5*time.Second, func() bool { daemons = s.pids("serviced"); return len(daemons) == 1 }) {
		s.evidence()
		return 0, fmt.Errorf("%d daemons are running, want 1: %v", len(daemons), daemons)
	}
	return daemons[0], nil
}

// adapters returns the resources of each running adapter.
func (s *soak) adapters() map[string]holding {
	held := map[string]holding{}
	for _, p := range s.processes() {
		if name, is := strings.CutPrefix(p.name, "service-plugin-"); is {
			held[name], _ = s.settled("adapter "+name, p.pid, false)
		}
	}
	return held
}

// shims returns the number of descriptors of each agent's service-mcp, which kept running during all faults.
func (s *soak) shims() map[string]int {
	held := map[string]int{}
	for _, a := range s.agents {
		held[a.name] = descriptors(a.cmd.Process.Pid)
	}
	return held
}

// openSessions returns the ids of open sessions, whose files may remain. This includes sessions of the other account,
// which were opened while its auth.json was in place.
func (s *soak) openSessions() (map[string]bool, error) {
	open := map[string]bool{}
	for _, as := range []struct {
		auth    []byte
		account string
	}{{s.foreign, s.foreigner}, {s.own, s.account}} {
		if err := s.putAuth(as.auth); err != nil {
			return nil, err
		}
		if !eventually(recovery, func() bool {
			var now struct{ AccountID string }
			out, err := s.run("whoami", "--json")
			return err == nil && json.Unmarshal(out, &now) == nil && now.AccountID == as.account
		}) {
			return nil, fmt.Errorf("the account did not become %s within %s", as.account, recovery)
		}
		out, err := s.run("session", "list", "--json")
		if err != nil {
			return nil, err
		}
		var list struct{ Sessions []struct{ SessionID string } }
		if err := json.Unmarshal(out, &list); err != nil {
			return nil, fmt.Errorf("list sessions: %w", err)
		}
		for _, session := range list.Sessions {
			open[session.SessionID] = true
		}
	}
	return open, nil
}

// end closes everything in order and checks what is left.
func (s *soak) end(before []string, shims map[string]int) error {
	fresh, err := newAgent("a fresh agent", false, s.command(context.Background(), "service-mcp"), s.results)
	if err != nil {
		return err
	}
	want, most := descriptors(fresh.cmd.Process.Pid), 0
	if err := fresh.close(); err != nil {
		return err
	}
	for name, n := range shims {
		if most = max(most, n); n > want+1 { // the client that started the daemon holds its descriptor
			s.results.report("the shim of %s has %d open descriptors, a new one %d", name, n, want)
		}
	}
	s.results.note("the shims, which ran through all faults",
		fmt.Sprintf("at most %d descriptors; a new one has %d", most, want))
	s.disconnect()
	open, err := s.openSessions()
	if err != nil {
		return err
	}
	if _, err := s.run("daemon", "stop"); err != nil {
		return err
	}
	s.backend.kill()
	if !eventually(10*time.Second, func() bool { return len(s.processes()) == 0 }) {
		s.results.report("processes still running at the end: %v", s.processes())
	}
	s.results.note("processes at the end", fmt.Sprint(len(s.processes())))
	s.left(before, open)
	s.checkStderr()
	return nil
}
