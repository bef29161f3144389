package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/service-dev/service/test/pgtest"
)

// server is a running program that serves a URL.
type server struct {
	url  string
	pid  int
	env  []string // extra environment of a backend
	stop func()
}

// startBackend starts the backend on a database. An empty database means a new SQLite file.
func (b *bench) startBackend(database string, settings ...string) (*server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	l.Close()
	url := "http://127.0.0.1:" + port
	data, err := os.MkdirTemp(b.work, "backend")
	if err != nil {
		return nil, err
	}
	if database == "" {
		database = filepath.Join(data, "service.db")
	}
	cmd := b.command("service-backend")
	cmd.Env = append(cmd.Env,
		"SERVICE_BACKEND_DATABASE="+database, "SERVICE_BACKEND_DATA_DIR="+data,
		"SERVICE_BACKEND_LISTEN=127.0.0.1:"+port, "SERVICE_BACKEND_BASE_URL="+url,
		"SERVICE_BACKEND_HMAC_KEY="+strings.Repeat("5a", 32), "SERVICE_BACKEND_LOG_LEVEL=error",
		"SERVICE_BACKEND_SESSIONS_PER_MINUTE=100000",
		"SERVICE_BACKEND_TRUSTED_PROXIES=127.0.0.1") // otherwise connections per address are limited
	cmd.Env = append(cmd.Env, settings...)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &server{url: url, pid: cmd.Process.Pid, env: cmd.Env, stop: func() {
		cmd.Process.Kill()
		cmd.Wait()
	}}
	for range 200 {
		resp, err := http.Get(url + "/api/health")
		if err == nil {
			resp.Body.Close()
			return s, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	s.stop()
	return nil, fmt.Errorf("service-backend did not respond at %s", url)
}

// startLinked starts a backend and links an account to it.
func (b *bench) startLinked(database string, settings ...string) (*server, *linked, error) {
	backend, err := b.startBackend(database, settings...)
	if err != nil {
		return nil, nil, err
	}
	who, err := link(backend.url, benchEmail)
	if err != nil {
		backend.stop()
		return nil, nil, fmt.Errorf("link an account: %w", err)
	}
	return backend, who, nil
}

// startBare starts a baseline program, which prints its URL and exits when its standard input closes.
func (b *bench) startBare(name string, args ...string) (*server, error) {
	p, err := spawn(exec.Command(filepath.Join(b.work, name), args...))
	if err != nil {
		return nil, err
	}
	url, err := p.out.ReadString('\n')
	if err != nil {
		p.close()
		return nil, err
	}
	return &server{url: strings.TrimSpace(url), pid: p.cmd.Process.Pid, stop: p.close}, nil
}

// onDatabases runs f on SQLite and, if available, on PostgreSQL. bareArgs are the arguments of the baseline program.
func onDatabases(what string, f func(engine, database string, bareArgs ...string) error) error {
	if err := f("SQLite", ""); err != nil {
		return err
	}
	cluster, err := pgtest.StartDurable()
	if errors.Is(err, pgtest.ErrMissing) {
		fmt.Printf("SKIPPED on PostgreSQL, which is missing: %s\n", what)
		return nil
	}
	if err != nil {
		return err
	}
	defer cluster.Stop()
	var databases [2]string
	for i := range databases {
		if databases[i], err = cluster.Create(); err != nil {
			return err
		}
	}
	return f("PostgreSQL", databases[0], databases[1])
}

// peer is a program that answers line by line: an MCP server or the echo baseline.
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

// spawnAgent starts an MCP server and performs the MCP handshake.
func spawnAgent(cmd *exec.Cmd) (*peer, error) {
	p, err := spawn(cmd)
	if err != nil {
		return nil, err
	}
	if _, err = p.ask(initialize); err == nil {
		_, err = io.WriteString(p.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
	}
	if err != nil {
		p.close()
		return nil, fmt.Errorf("initialize: %w", err)
	}
	return p, nil
}

// ask sends one line and returns the next line.
func (p *peer) ask(line string) (string, error) {
	if _, err := io.WriteString(p.in, line+"\n"); err != nil {
		return "", err
	}
	return p.out.ReadString('\n')
}

// exchange is like ask, but drops the response.
func (p *peer) exchange(line string) error {
	_, err := p.ask(line)
	return err
}

func (p *peer) close() {
	p.in.Close()
	p.cmd.Wait()
}

func timed(f func() error) (time.Duration, error) {
	start := time.Now()
	err := f()
	return time.Since(start), err
}

// measure appends the duration of f to into, which may be nil.
func measure(into *[]time.Duration, f func() error) error {
	d, err := timed(f)
	if err == nil && into != nil {
		*into = append(*into, d)
	}
	return err
}
