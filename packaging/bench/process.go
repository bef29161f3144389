package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`

// peer is an MCP server process that answers lines.
type peer struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func spawn(cmd *exec.Cmd) (*peer, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &peer{cmd: cmd, in: in, out: bufio.NewReaderSize(out, 1<<20)}, nil
}

// ask sends one line and gives the next line back.
func (p *peer) ask(line string) (string, error) {
	if _, err := io.WriteString(p.in, line+"\n"); err != nil {
		return "", err
	}
	return p.out.ReadString('\n')
}

func (p *peer) close() {
	p.in.Close()
	p.cmd.Wait()
}

// warm starts the daemon and its embedded backend, and keeps the tool list for the in-process server.
func (b *bench) warm() error {
	p, err := spawn(b.command("service-mcp"))
	if err != nil {
		return err
	}
	defer p.close()
	if _, err := p.ask(initialize); err != nil {
		return fmt.Errorf("first answer: %w", err)
	}
	io.WriteString(p.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
	list, err := p.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	if err != nil {
		return err
	}
	var answer struct{ Result json.RawMessage }
	if err := json.Unmarshal([]byte(list), &answer); err != nil {
		return err
	}
	if _, err := p.ask(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"createSimulatorSession","arguments":{"openBrowser":false}}}`); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(b.work, "tools.json"), answer.Result, 0o600)
}

// starts measures process start to first MCP answer, against an empty program and an in-process server.
func (b *bench) starts() error {
	var ours, empty, inProcess []time.Duration
	for range b.runs {
		d, err := timed(func() error { return exec.Command(filepath.Join(b.work, "empty")).Run() })
		if err != nil {
			return err
		}
		empty = append(empty, d)
		if d, err = firstAnswer(b.command("service-mcp")); err != nil {
			return err
		}
		ours = append(ours, d)
		if d, err = firstAnswer(exec.Command(filepath.Join(b.work, "inprocess"), filepath.Join(b.work, "tools.json"))); err != nil {
			return err
		}
		inProcess = append(inProcess, d)
	}
	o, e, i := median(ours), median(empty), median(inProcess)
	b.rows = append(b.rows,
		row{"service-mcp, start to first answer / empty Go program", ms(o), ms(e), ratio(float64(o), float64(e)), "<= 1.6"},
		row{"service-mcp, start to first answer / in-process MCP server", ms(o), ms(i), ratio(float64(o), float64(i)), "< 0.5"})
	return nil
}

func timed(f func() error) (time.Duration, error) {
	start := time.Now()
	err := f()
	return time.Since(start), err
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

// shim measures the resident memory of service-mcp after a session's talk, and a tool call's round trip.
func (b *bench) shim() error {
	p, err := spawn(b.command("service-mcp"))
	if err != nil {
		return err
	}
	defer p.close()
	if _, err := p.ask(initialize); err != nil {
		return err
	}
	io.WriteString(p.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
	const call = `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"whoAmI","arguments":{}}}`
	var trips []time.Duration
	for n := range 500 {
		d, err := timed(func() error {
			_, err := p.ask(fmt.Sprintf(call, n+10))
			return err
		})
		if err != nil {
			return err
		}
		if n >= 100 {
			trips = append(trips, d)
		}
	}
	rss, anon, err := memory(p.cmd.Process.Pid)
	if err != nil {
		return err
	}
	empty, err := emptyMemory(filepath.Join(b.work, "inprocess"), filepath.Join(b.work, "tools.json"))
	if err != nil {
		return err
	}
	b.rows = append(b.rows,
		row{"service-mcp, resident after 500 calls / in-process server", mb(rss), mb(empty), ratio(float64(rss), float64(empty)), "<= 3 MB"},
		row{"service-mcp, of it not shared with the file", mb(anon), "", "", ""},
		row{"tool call, round trip (whoAmI)", ms(median(trips)), "", "", "< 0.4 ms"})
	return nil
}

func emptyMemory(program, arg string) (int64, error) {
	p, err := spawn(exec.Command(program, arg))
	if err != nil {
		return 0, err
	}
	defer p.close()
	if _, err := p.ask(initialize); err != nil {
		return 0, err
	}
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

// whoami measures the CLI's commonest question against an empty program.
func (b *bench) whoami() error {
	var ours, empty []time.Duration
	for range b.runs {
		d, err := timed(func() error { return exec.Command(filepath.Join(b.work, "empty")).Run() })
		if err != nil {
			return err
		}
		empty = append(empty, d)
		d, _ = timed(func() error { return b.command("servicectl", "whoami").Run() }) // exit 1: not linked
		ours = append(ours, d)
	}
	o, e := median(ours), median(empty)
	b.rows = append(b.rows, row{"servicectl whoami / empty Go program", ms(o), ms(e), ratio(float64(o), float64(e)), "<= 3.5"})
	return nil
}

// idle adds up the memory of the daemon and the adapters it started.
func (b *bench) idle() error {
	var record struct{ PID int }
	data, err := os.ReadFile(filepath.Join(b.work, "state", "run", "daemon.json"))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, &record); err != nil {
		return err
	}
	daemon, _, err := memory(record.PID)
	if err != nil {
		return err
	}
	var adapters int64
	for _, child := range children(record.PID) {
		rss, _, err := memory(child)
		if err == nil {
			adapters += rss
		}
	}
	b.rows = append(b.rows, row{
		"idle daemon + adapters, resident", mb(daemon) + " + " + mb(adapters), "", mb(daemon + adapters), "< 60 MB"})
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
		// pid (name) state ppid ...; the name may hold spaces.
		text := string(data)
		fields := strings.Fields(text[strings.LastIndex(text, ")")+1:])
		if len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			pid, _ := strconv.Atoi(strings.Fields(text)[0])
			found = append(found, pid)
		}
	}
	return found
}
