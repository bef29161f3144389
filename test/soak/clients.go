//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// killAgent starts agents that make slow and fast calls, and kills their service-mcp processes during the calls.
func (s *soak) killAgent(rng *rand.Rand) (string, func() error, error) {
	n := 1 + rng.IntN(4)
	for i := range n {
		a, err := newAgent(fmt.Sprintf("doomed agent %d", i), true, s.command(context.Background(), "service-mcp"), s.results)
		if err != nil {
			return "", nil, err
		}
		var calls sync.WaitGroup
		for tool, args := range map[string]map[string]any{
			"waitForEvent": {"type": "app.attached", "timeoutSeconds": 40}, "whoAmI": {},
			"createSimulatorSession": {"project": "com.example.doomed", "openBrowser": false},
		} {
			calls.Go(func() { _, _, _ = a.call(tool, args) }) // the agent is killed, so the result is not checked
		}
		time.Sleep(time.Duration(rng.IntN(60)) * time.Millisecond) // kill it at a random point of the conversation
		_ = a.cmd.Process.Kill()
		calls.Wait()
		_ = a.close()
	}
	return fmt.Sprint(n), nil, nil
}

// cutLogin starts a login and kills servicectl after it has printed the code. This must not change the link.
func (s *soak) cutLogin(*rand.Rand) (string, func() error, error) {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	cmd := s.command(ctx, "servicectl", "login", "--json")
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	var said struct{ Event string }
	_ = json.NewDecoder(out).Decode(&said) // it fails only because of an active fault
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	return said.Event, nil, nil
}

// upgrade replaces the daemon's program file and restarts the daemon, as a package manager does.
func (s *soak) upgrade(*rand.Rand) (string, func() error, error) {
	fresh := s.daemon() + ".upgrade"
	if err := copyFile(s.daemon(), fresh); err != nil {
		return "", nil, err
	}
	if err := os.Rename(fresh, s.daemon()); err != nil {
		return "", nil, err
	}
	_, err := s.run("daemon", "restart")
	return "", nil, err
}

// storm kills one adapter after each of its restarts, until its circuit breaker opens.
func (s *soak) storm(rng *rand.Rand) (string, func() error, error) {
	name := []string{"service-plugin-backendhttp", "service-plugin-localsim"}[rng.IntN(2)]
	killed := 0
	for late := time.Now().Add(20 * time.Second); killed < 5 && time.Now().Before(late); {
		for _, p := range slices.DeleteFunc(s.processes(), func(p process) bool { return p.name != name }) {
			kill(p.pid)
			killed++
		}
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Sprintf("(%s, %d times)", strings.TrimPrefix(name, "service-plugin-"), killed), nil, nil
}

// loseSockets deletes the daemon's sockets.
func (s *soak) loseSockets(*rand.Rand) (string, func() error, error) {
	for _, name := range []string{"control.sock", "mcp.sock"} {
		if err := os.Remove(filepath.Join(s.state, "run", name)); err != nil && !os.IsNotExist(err) {
			return "", nil, err
		}
	}
	return "", nil, nil
}
