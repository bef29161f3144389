package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// restLimit is the maximum time until the adapters of an idle daemon rest.
const restLimit = 2 * time.Minute

// idle measures the total memory of a daemon and its adapters, first after a call to the embedded backend and then
// while the backend rests. It also measures a request that wakes the backend, compared with the next request.
func (b *bench) idle() error {
	state := filepath.Join(b.work, "idle")
	command := b.commandsIn(state)
	defer func() { command("servicectl", "daemon", "stop").Run() }()
	var failed *exec.ExitError
	if err := command("servicectl", "doctor").Run(); err != nil && !errors.As(err, &failed) { // calls the backend
		return err
	}
	var record struct{ PID int }
	data, err := os.ReadFile(filepath.Join(state, "run", "daemon.json"))
	if err == nil {
		err = json.Unmarshal(data, &record)
	}
	if err != nil {
		return err
	}
	port, err := os.ReadFile(filepath.Join(state, "backend", "port"))
	if err != nil {
		return err
	}
	if err := b.idleMemory("idle daemon + adapters after a call, resident", record.PID, "< 80 MB"); err != nil {
		return err
	}
	if err := untilRest(record.PID); err != nil {
		return err
	}
	if err := b.idleMemory("idle daemon, adapters at rest, resident", record.PID, "< 50 MB"); err != nil {
		return err
	}
	var asleep, awake []time.Duration
	for _, into := range []*[]time.Duration{&asleep, &awake} {
		if err := measure(into, func() error { return health(strings.TrimSpace(string(port))) }); err != nil {
			return err
		}
	}
	b.rows = append(b.rows, timesRow("one request to the embedded backend at rest / awake", asleep, awake, medianMs, ""))
	return nil
}

// commandsIn returns a function like command, for another state directory.
func (b *bench) commandsIn(state string) func(name string, args ...string) *exec.Cmd {
	return func(name string, args ...string) *exec.Cmd {
		cmd := b.command(name, args...)
		cmd.Env = append(append([]string{}, cmd.Env...), "SERVICE_CONFIG_DIR="+state)
		return cmd
	}
}

// idleMemory adds a row for the memory of a daemon and its adapters.
func (b *bench) idleMemory(figure string, pid int, goal string) error {
	daemon, _, err := memory(pid)
	if err != nil {
		return err
	}
	var adapters int64
	for _, child := range children(pid) {
		rss, _, err := memory(child)
		if err == nil {
			adapters += rss
		}
	}
	b.rows = append(b.rows, row{figure, mb(daemon) + " + " + mb(adapters), "", mb(daemon + adapters), goal})
	return nil
}

// untilRest waits until no adapter of a daemon is running.
func untilRest(pid int) error {
	for end := time.Now().Add(restLimit); len(children(pid)) > 0; time.Sleep(time.Second) {
		if time.Now().After(end) {
			return fmt.Errorf("an adapter still runs after %v", restLimit)
		}
	}
	return nil
}

// health requests the health of the embedded backend on a new connection.
func health(port string) error {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://localhost:" + port + "/api/health")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the health check answered %s", resp.Status)
	}
	return nil
}
