package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25",` +
	`"capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`

// withAgent returns a step that talks to the service like an agent.
func (b *bench) withAgent(step func(p *peer) error) func() error {
	return func() error {
		p, err := spawnAgent(b.shimCommand())
		if err != nil {
			return err
		}
		defer p.close()
		return step(p)
	}
}

// warm starts the daemon and its embedded backend, and saves the tool list for the in-process server.
func (b *bench) warm(p *peer) error {
	list, err := p.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	if err != nil {
		return err
	}
	var answer struct{ Result json.RawMessage }
	if err := json.Unmarshal([]byte(list), &answer); err != nil {
		return err
	}
	if _, err := p.ask(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"createSimulatorSession",` +
		`"arguments":{"openBrowser":false}}}`); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(b.work, "tools.json"), answer.Result, 0o600)
}

// starts measures the time from process start to the first MCP response, compared with an empty program and an
// in-process server.
func (b *bench) starts() error {
	var ours, empty, inProcess []time.Duration
	for range b.runs {
		if err := measure(&empty, b.empty); err != nil {
			return err
		}
		d, err := firstAnswer(b.command("service-mcp"))
		if err != nil {
			return err
		}
		ours = append(ours, d)
		if d, err = firstAnswer(b.inProcess()); err != nil {
			return err
		}
		inProcess = append(inProcess, d)
	}
	b.rows = append(b.rows,
		timesRow("service-mcp, start to first answer / empty Go program", ours, empty, medianMs, "<= 1.6"),
		timesRow("service-mcp, start to first answer / in-process MCP server", ours, inProcess, medianMs, "< 0.5"))
	return nil
}

func firstAnswer(cmd *exec.Cmd) (time.Duration, error) {
	var p *peer
	d, err := timed(func() (err error) {
		if p, err = spawn(cmd); err != nil {
			return err
		}
		_, err = p.ask(initialize)
		return err
	})
	if p != nil {
		p.close()
	}
	return d, err
}

// shim measures the resident memory of service-mcp after a typical session, and the round trip of a tool call.
func (b *bench) shim(p *peer) error {
	const call = `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"whoAmI","arguments":{}}}`
	var trips []time.Duration
	for n := range 500 {
		if n == 100 { // end of the warm-up
			trips = nil
		}
		if err := measure(&trips, func() error { return p.exchange(fmt.Sprintf(call, n+10)) }); err != nil {
			return err
		}
	}
	rss, anon, err := memory(p.cmd.Process.Pid)
	if err != nil {
		return err
	}
	empty, err := emptyMemory(b.inProcess())
	if err != nil {
		return err
	}
	b.rows = append(b.rows,
		row{"service-mcp, resident after 500 calls / in-process server", mb(rss), mb(empty),
			ratio(float64(rss), float64(empty)), "<= 3 MB"},
		row{"service-mcp, of it not shared with the file", mb(anon), "", "", ""},
		row{"tool call, round trip (whoAmI)", ms(median(trips)), "", "", "< 0.4 ms"})
	return nil
}

// empty runs a Go program that does nothing.
func (b *bench) empty() error { return exec.Command(filepath.Join(b.work, "empty")).Run() }

// inProcess returns the command of an MCP server that handles the same tools itself.
func (b *bench) inProcess() *exec.Cmd {
	return exec.Command(filepath.Join(b.work, "inprocess"), filepath.Join(b.work, "tools.json"))
}

func emptyMemory(cmd *exec.Cmd) (int64, error) {
	p, err := spawnAgent(cmd)
	if err != nil {
		return 0, err
	}
	defer p.close()
	rss, _, err := memory(p.cmd.Process.Pid)
	return rss, err
}

// memory reads a process's resident and anonymous memory in KB.
func memory(pid int) (rss, anon int64, err error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		switch fields[0] {
		case "VmRSS:":
			rss, _ = strconv.ParseInt(fields[1], 10, 64)
		case "RssAnon:":
			anon, _ = strconv.ParseInt(fields[1], 10, 64)
		}
	}
	return rss, anon, nil
}

// whoamiOnce measures an empty program and whoami once each.
func (b *bench) whoamiOnce(ours, empty *[]time.Duration) error {
	if err := measure(empty, b.empty); err != nil {
		return err
	}
	d, _ := timed(func() error { return b.command("servicectl", "whoami").Run() }) // exit 1: not linked
	*ours = append(*ours, d)
	return nil
}

// whoami measures `servicectl whoami`, compared with an empty program.
func (b *bench) whoami() error {
	var ours, empty []time.Duration
	for range b.runs {
		if err := b.whoamiOnce(&ours, &empty); err != nil {
			return err
		}
	}
	b.rows = append(b.rows, timesRow("servicectl whoami / empty Go program", ours, empty, medianMs, "<= 3.0"))
	return nil
}

func children(parent int) []int {
	var found []int
	statuses, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range statuses {
		data, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		// The format is "pid (name) state ppid ...", and the name may contain spaces.
		text := string(data)
		fields := strings.Fields(text[strings.LastIndex(text, ")")+1:])
		if len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			pid, _ := strconv.Atoi(strings.Fields(text)[0])
			found = append(found, pid)
		}
	}
	return found
}
