package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	coldClients = 20
	coldRuns    = 15
)

// cold starts 20 clients while no daemon runs and measures the time until the last one succeeds, compared with a
// single client. Half of them are agents' shims, and half are terminals. One of them starts the daemon that all use.
func (b *bench) cold() error {
	state := filepath.Join(b.work, "cold")
	command := b.commandsIn(state)
	stop := func() error {
		var ended *exec.ExitError
		if err := command("servicectl", "daemon", "stop").Run(); err != nil && !errors.As(err, &ended) {
			return err
		}
		return nil
	}
	defer stop()
	if _, err := firstAnswer(command("service-mcp")); err != nil { // creates the state directory and its files
		return err
	}
	var many, one []time.Duration
	for range coldRuns {
		if err := stop(); err != nil {
			return err
		}
		d, err := firstAnswer(command("service-mcp"))
		if err != nil {
			return err
		}
		one = append(one, d)
		if err := stop(); err != nil {
			return err
		}
		before := daemonStarts(state)
		if d, err = coldAtOnce(command); err != nil {
			return err
		}
		many = append(many, d)
		if n := daemonStarts(state) - before; n != 1 {
			return fmt.Errorf("%d daemons started for %d clients", n, coldClients)
		}
	}
	b.rows = append(b.rows, timesRow("20 cold clients at once, to the last good answer / one", many, one, spread, ""))
	return nil
}

// coldAtOnce starts all clients together and returns the time until the last of them gets its response.
func coldAtOnce(command func(string, ...string) *exec.Cmd) (last time.Duration, err error) {
	answered := make(chan time.Duration, coldClients)
	failed := make(chan error, coldClients)
	begin := time.Now()
	for n := range coldClients {
		go func() {
			since := time.Since(begin)
			took, err := coldAnswer(n, command)
			if err != nil {
				failed <- err
				return
			}
			answered <- since + took
		}()
	}
	for range coldClients {
		select {
		case at := <-answered:
			last = max(last, at)
		case e := <-failed:
			err = errors.Join(err, e)
		}
	}
	return last, err
}

// coldAnswer runs one client: an agent's shim or a terminal.
func coldAnswer(n int, command func(string, ...string) *exec.Cmd) (time.Duration, error) {
	if n%2 == 0 {
		return firstAnswer(command("service-mcp"))
	}
	return timed(func() error {
		out, _ := command("servicectl", "whoami", "--json").Output() // exit 1: not linked
		if !strings.Contains(string(out), `"not_linked"`) {
			return fmt.Errorf("whoami printed %q", out)
		}
		return nil
	})
}

// daemonStarts returns the number of daemons that have started in a state directory.
func daemonStarts(state string) int {
	log, _ := os.ReadFile(filepath.Join(state, "log", "serviced.log"))
	return strings.Count(string(log), `"daemon started"`)
}
