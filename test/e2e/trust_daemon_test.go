//go:build unix

package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// stream is an agent's connection that this test keeps open.
type stream struct {
	net.Conn
	lines *bufio.Reader
}

const handshakeLine = `{"mcp":1,"protocolMin":1,"protocolMax":1,"version":"1","client":"crowd","env":{"SERVICE_NO_AUTO_OPEN":"1"}}` + "\n"

// openStream dials mcp.sock, sends the handshake and returns the response.
func openStream(t *testing.T, w *world) (*stream, string) {
	t.Helper()
	conn, err := net.Dial("unix", filepath.Join(w.dir, "run", "mcp.sock"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	_, _ = io.WriteString(conn, handshakeLine) // a refused stream may already be closed
	s := &stream{Conn: conn, lines: bufio.NewReaderSize(conn, 64<<10)}
	return s, s.line(t)
}

func (s *stream) line(t *testing.T) string {
	t.Helper()
	line, err := s.lines.ReadString('\n')
	if err != nil {
		t.Fatalf("read stream: %v (%q)", err, line)
	}
	return line
}

// One process opens as many streams, connections and calls as it can. Each one over a limit is refused with the
// reason. The same daemon still serves a user and an agent, and releases everything afterwards.
func TestDaemon_ProcessExhaustsLimits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.ctl("whoami")
	pid := w.daemonPID()
	good := openShim(t, w)
	good.ask(initialize)
	before := descriptorsOf(t, pid)

	var streams []*stream
	refused := ""
	for range 300 {
		s, answer := openStream(t, w)
		if strings.Contains(answer, `"ok":true`) {
			streams = append(streams, s)
		} else {
			refused = answer
		}
	}
	if len(streams) == 0 || len(streams) > 200 || !strings.Contains(refused, `"too_many_clients"`) ||
		!strings.Contains(refused, fmt.Sprint(os.Getpid())) || !strings.Contains(refused, `"fixHint"`) {
		t.Errorf("%d of 300 streams were accepted, want 1 to 200; the last refused one received %s", len(streams), refused)
	}
	for range 300 {
		conn, err := net.Dial("unix", filepath.Join(w.dir, "run", "control.sock"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	busy := crowdCalls(t, streams)
	if !strings.Contains(busy, `"too_many_calls"`) || !strings.Contains(busy, `"retryable":true`) ||
		!strings.Contains(busy, `"isError":true`) {
		t.Errorf("a call over the limit received %s, want too_many_calls", busy)
	}

	if n := descriptorsOf(t, pid); n > before+450 {
		t.Errorf("the daemon has %d open descriptors, want at most 450 more than %d", n, before)
	}
	for _, args := range [][]string{{"status", "--json"}, {"tool", "call", "startLocalSimulation"}, {"doctor"}} {
		if out, errs, exit := w.ctl(args...); exit != 0 {
			t.Errorf("servicectl %v under load: exit %d, want 0: %s%s", args, exit, out, errs)
		}
	}
	if _, errs, exit := w.ctl("whoami"); exit != 1 {
		t.Errorf("whoami under load: exit %d, want 1: %s", exit, errs)
	}
	if got := good.ask(`{"jsonrpc":"2.0","id":5,"method":"ping"}` + "\n"); !strings.Contains(got, `"id":5`) ||
		strings.Contains(got, `"error"`) {
		t.Errorf("ping of an agent connected before the load: got %s, want a result", got)
	}
	if line, err := firstAnswer(w, initialize); err != nil || !strings.Contains(line, `"serverInfo"`) {
		t.Errorf("initialize of a new agent: got error %v, answer %s, want the server's answer", err, line)
	}

	for _, s := range streams {
		s.Close()
	}
	must(t, "all clients but one are released", func() bool { return statusOf(t, w).MCPClients == 1 })
	if w.daemonPID() != pid {
		t.Error("the daemon was replaced, want the same process")
	}
}

// crowdCalls makes more calls than one stream may have in flight, each waiting for an event that never occurs, and
// returns the first refusal.
func crowdCalls(t *testing.T, streams []*stream) string {
	t.Helper()
	s := streams[0]
	send := func(line string) {
		if _, err := io.WriteString(s, line+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	_, _ = io.WriteString(s, initialize)
	s.line(t)
	send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	send(`{"jsonrpc":"2.0","id":"sim","method":"tools/call","params":{"name":"startLocalSimulation","arguments":{"project":"com.example.crowd"}}}`)
	var answer struct {
		Result struct{ StructuredContent struct{ SessionID string } }
	}
	if line := s.line(t); json.Unmarshal([]byte(line), &answer) != nil ||
		answer.Result.StructuredContent.SessionID == "" {
		t.Fatalf("startLocalSimulation: got %s, want a session id", line)
	}
	for i := range 200 {
		send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"waitForEvent","arguments":{"sessionId":%q,"type":"app.attached","timeoutSeconds":50}}}`,
			100+i, answer.Result.StructuredContent.SessionID))
	}
	return s.line(t)
}

// descriptorsOf counts a process's open files, or returns 0 if that is unknown.
func descriptorsOf(t *testing.T, pid int) int {
	t.Helper()
	entries, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	return len(entries)
}

// After kill -9 of the daemon, its adapters exit within 3 s. The next daemon starts new ones and removes the old
// adapters' directories.
func TestAdapters_EndWithDaemon(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	work := func() []int {
		t.Helper()
		// These calls start localsim and backendlocal.
		for _, args := range [][]string{{"tool", "call", "startLocalSimulation"}, {"doctor"}} {
			if out, errs, exit := w.ctl(args...); exit != 0 {
				t.Fatalf("servicectl %v: exit %d, want 0: %s%s", args, exit, out, errs)
			}
		}
		out, _, _ := w.ctl("plugin", "list", "--json")
		var list struct{ Plugins []struct{ PID int } }
		if err := json.Unmarshal([]byte(out), &list); err != nil {
			t.Fatal(err)
		}
		var pids []int
		for _, p := range list.Plugins {
			if p.PID > 0 {
				pids = append(pids, p.PID)
			}
		}
		if len(pids) != 2 {
			t.Fatalf("want two running adapters: %s", out)
		}
		return pids
	}
	pids := work()
	if err := syscall.Kill(w.daemonPID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	for _, pid := range pids {
		if !waitGone(pid, 3*time.Second-time.Since(killed)) {
			t.Errorf("adapter %d still runs 3 s after its daemon was killed", pid)
		}
	}
	work()
	if dirs, err := filepath.Glob(filepath.Join(w.dir, "run", "a", "*")); err != nil || len(dirs) != 2 {
		t.Errorf("socket directories: got %v (error %v), want those of two adapters", dirs, err)
	}
}
