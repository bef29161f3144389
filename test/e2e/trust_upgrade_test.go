//go:build unix

package e2e

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// install creates a separate installation for this world, so that its programs can be replaced.
func (w *world) install(t *testing.T) {
	t.Helper()
	dir := filepath.Join(filepath.Dir(w.dir), "bin")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(bin)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if err := os.Link(filepath.Join(bin, e.Name()), filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	w.bin = dir
}

// nextVersion is the version of the next release in these tests.
const nextVersion = "9.0.0"

// nextRelease returns the directory of the programs as built by a later release.
func nextRelease(t *testing.T) string {
	t.Helper()
	dir, err := nextPrograms()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

var nextPrograms = sync.OnceValues(func() (string, error) { return buildNext() })

// buildNext builds the programs with nextVersion, in a temporary directory.
func buildNext(flags ...string) (string, error) {
	dir, err := os.MkdirTemp("", "next")
	if err != nil {
		return "", err
	}
	args := []string{"build", "-tags", "grpcnotrace", "-trimpath",
		"-ldflags", "-s -w -X github.com/service-dev/service/internal/buildinfo.Version=" + nextVersion, "-o", dir + "/"}
	args = append(append(args, flags...), "./daemon/serviced", "./ctl/servicectl", "./ctl/service-mcp")
	build := exec.Command("go", args...)
	build.Dir, build.Env = filepath.Join("..", ".."), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the next release: %w\n%s", err, out)
	}
	serviced, err := os.ReadFile(filepath.Join(dir, "serviced"))
	if err != nil {
		return "", err
	}
	sum := fmt.Appendf(nil, "%x  serviced\n", sha256.Sum256(serviced))
	return dir, os.WriteFile(filepath.Join(dir, "plugins.sha256"), sum, 0o600)
}

// protocolOverlay returns a build overlay with another protocol range.
func protocolOverlay(t *testing.T, protocol int) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", "internal", "rendezvous", "rendezvous.go"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(source)
	for _, name := range []string{"MCPProtocolMin", "MCPProtocolMax", "ControlProtocolMin", "ControlProtocolMax"} {
		text = strings.Replace(text, "\t"+name+" = 1\n", fmt.Sprintf("\t%s = %d\n", name, protocol), 1)
	}
	if strings.Count(text, fmt.Sprintf(" = %d\n", protocol)) < 4 {
		t.Fatal("the source file with the protocol range has changed")
	}
	write(t, filepath.Join(dir, "rendezvous.go"), []byte(text))
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{path: filepath.Join(dir,
		"rendezvous.go")}})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "overlay.json"), overlay)
	return filepath.Join(dir, "overlay.json")
}

type daemonStatus struct {
	Version, Program string
	Replaced         bool
	PID              int
	MCPClients       int
}

func statusOf(t *testing.T, w *world) daemonStatus {
	t.Helper()
	out, errs, exit := w.ctl("status", "--json")
	var s daemonStatus
	if exit != 0 || json.Unmarshal([]byte(out), &s) != nil {
		t.Fatalf("status: exit %d, want 0 and JSON: %s%s", exit, out, errs)
	}
	return s
}

// taps are the inputs that working agents requested. Each tap has its own position, so that a repeated tap is
// detected.
type taps struct {
	mu    sync.Mutex
	next  int
	done  map[string]bool // taps whose call succeeded
	maybe map[string]bool // taps whose call failed, which may or may not have been executed
}

// work sends taps until stop is closed. Every call must return a result or a retryable error.
func (p *taps) work(t *testing.T, a *agent, session string, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		p.mu.Lock()
		p.next++
		x, y := p.next%500, p.next/500
		p.mu.Unlock()
		_, ch := a.start("injectInput", map[string]any{"sessionId": session, "kind": "tap", "x": x, "y": y}, false,
			time.Minute)
		var line agentLine
		select {
		case line = <-ch:
		case <-time.After(time.Minute):
			t.Error("a call got no response within a minute")
			return
		}
		var r toolResult
		if line.Error != nil || json.Unmarshal(line.Result, &r) != nil {
			t.Errorf("a call got error %v, want a result", line.Error)
			return
		}
		key := fmt.Sprint(x, " ", y)
		p.mu.Lock()
		switch {
		case !r.IsError:
			p.done[key] = true
		case r.Structured["retryable"] == true:
			p.maybe[key] = true
		default:
			t.Errorf("a call failed with %v, want only retryable errors", r.Structured)
		}
		p.mu.Unlock()
	}
}

func (p *taps) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.done)
}

// The daemon's program is replaced while agents are working, and status reports it. After the restart, the same
// agents continue with the new daemon in the same session. Every call got a response, and no input was executed
// twice.
func TestUpgrade_KeepsAgentsConnected(t *testing.T) {
	t.Parallel()
	next := nextRelease(t)
	for _, protocol := range []string{"legacy", "modern"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "")
			w.install(t)
			a := startAgent(w, protocol, false)
			session := a.call("startLocalSimulation", map[string]any{}).str(t, "sessionId")
			old := statusOf(t, w)
			if old.Replaced || old.Version == nextVersion || old.Program != filepath.Join(w.bin, "serviced") {
				t.Fatalf("status before the upgrade: got %+v, want the present version, not replaced", old)
			}
			p := &taps{done: map[string]bool{}, maybe: map[string]bool{}}
			stop := make(chan struct{})
			var workers sync.WaitGroup
			for range 4 {
				workers.Go(func() { p.work(t, a, session, stop) })
			}
			must(t, "the agents are at work", func() bool { return p.count() > 20 })

			for _, name := range []string{"plugins.sha256", "serviced"} {
				upgrade(t, filepath.Join(next, name), filepath.Join(w.bin, name))
			}
			if now := statusOf(t, w); !now.Replaced || now.PID != old.PID || now.Version != old.Version {
				t.Errorf("status after the program was replaced: got %+v, want the same daemon, marked as replaced", now)
			}
			if out, errs, exit := w.ctl("status"); exit != 0 ||
				!strings.Contains(errs, "servicectl daemon restart") || !strings.Contains(out, "replaced") {
				t.Errorf("status: exit %d, want 0 and the restart command: %s%s", exit, out, errs)
			}
			if out, errs, exit := w.ctl("daemon", "restart"); exit != 0 || !strings.Contains(out, nextVersion) {
				t.Errorf("daemon restart: exit %d, want 0 and the new version: %s%s", exit, out, errs)
			}
			before := p.count()
			must(t, "the agents continue with the new daemon", func() bool { return p.count() > before+20 })
			close(stop)
			workers.Wait()

			now := statusOf(t, w)
			if now.Replaced || now.Version != nextVersion || now.PID == old.PID || now.MCPClients != 1 {
				t.Errorf("status after the restart: got %+v, want the new version, a new pid and one client", now)
			}
			p.check(t, eventRows(t, a, session))
			t.Logf("%d calls: %d done, %d answered by an error that may be tried again", p.next, len(p.done),
				len(p.maybe))
		})
	}
}

// upgrade replaces the file of a running program, as package managers do.
func upgrade(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to+".new", data, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(to+".new", to); err != nil {
		t.Fatal(err)
	}
}

// check compares the responses with the session's log.
func (p *taps) check(t *testing.T, rows []map[string]any) {
	t.Helper()
	seen := map[string]bool{}
	for _, row := range rows {
		if row["type"] != "input" {
			continue
		}
		at, _ := row["payload"].(map[string]any)
		key := fmt.Sprint(at["x"], " ", at["y"])
		if seen[key] {
			t.Errorf("the tap at %s happened twice", key)
		}
		if !p.done[key] && !p.maybe[key] {
			t.Errorf("the tap at %s was never requested", key)
		}
		seen[key] = true
	}
	for key := range p.done {
		if !seen[key] {
			t.Errorf("the tap at %s succeeded but is not in the log", key)
		}
	}
}

// If the programs on a machine come from incompatible builds, in either direction, the error names the outdated side
// and the fix. After the fix, both sides work.
func TestProtocolMismatch_NamesOutdatedSide(t *testing.T) {
	t.Parallel()
	next, err := buildNext("-overlay", protocolOverlay(t, 2))
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, "")
	later := *w
	later.bin = next

	// First an old daemon with new clients.
	if _, _, exit := w.ctl("whoami"); exit != 1 {
		t.Fatalf("whoami: exit %d, want 1", exit)
	}
	wantMismatch(t, &later, "the daemon is too old", "servicectl daemon restart")
	shim := openShim(t, &later)
	if got := shim.ask(initialize); !strings.Contains(got, "protocol_mismatch") ||
		!strings.Contains(got, "the daemon is too old") || !strings.Contains(got, "servicectl daemon restart") {
		t.Errorf("a new shim with an old daemon: got %s, want protocol_mismatch with the fix", got)
	}
	if out, errs, exit := later.ctl("daemon", "restart"); exit != 0 || !strings.Contains(out, nextVersion) {
		t.Fatalf("daemon restart: exit %d, want 0 and the new version: %s%s", exit, out, errs)
	}
	if out, errs, exit := later.ctl("plugin", "list"); exit != 0 {
		t.Errorf("plugin list after the restart: exit %d, want 0: %s%s", exit, out, errs)
	}
	must(t, "the same shim works with the new daemon",
		func() bool { return strings.Contains(shim.ask(initialize), `"serverInfo"`) })

	// Then a new daemon with old clients.
	wantMismatch(t, w, "the client is too old", "upgrade the client")
	if got, err := firstAnswer(w, initialize); err != nil || !strings.Contains(got, "the client is too old") ||
		!strings.Contains(got, "upgrade") || !strings.Contains(got, nextVersion) {
		t.Errorf("an old shim with a new daemon: got %s (error %v), want an error with the fix", got, err)
	}
	if got := shim.ask(`{"jsonrpc":"2.0","id":9,"method":"ping"}` + "\n"); !strings.Contains(got, `"result"`) {
		t.Errorf("ping of the connected shim: got %s, want a result", got)
	}
}

// wantMismatch calls a daemon of an incompatible build. A request is refused with an explanation, while status and
// doctor still work.
func wantMismatch(t *testing.T, w *world, message, fix string) {
	t.Helper()
	if out, errs, exit := w.ctl("plugin", "list"); exit != 2 || !strings.Contains(errs, message) ||
		!strings.Contains(errs, fix) {
		t.Errorf("plugin list: exit %d, want 2 with the cause and the fix: %s%s", exit, out, errs)
	}
	if out, _, exit := w.ctl("plugin", "list", "--json"); exit != 2 || !strings.Contains(out, `"protocol_mismatch"`) {
		t.Errorf("plugin list --json: exit %d, want 2 and protocol_mismatch: %s", exit, out)
	}
	if out, errs, exit := w.ctl("status"); exit != 0 || !strings.Contains(errs, "too old") ||
		!strings.Contains(out, "this program is ") {
		t.Errorf("status: exit %d, want 0 and both versions: %s%s", exit, out, errs)
	}
	if out, errs, exit := w.ctl("doctor"); exit != 1 || !strings.Contains(out, "too old") {
		t.Errorf("doctor: exit %d, want 1 and the program that is too old: %s%s", exit, out, errs)
	}
}

// shim is a service-mcp process with the test as its client.
type shim struct {
	t     *testing.T
	in    interface{ Write([]byte) (int, error) }
	lines *bufio.Scanner
}

func openShim(t *testing.T, w *world) *shim {
	t.Helper()
	cmd := w.command("service-mcp")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Signal(syscall.SIGKILL) })
	t.Cleanup(func() {
		stdin.Close()
		_ = cmd.Wait()
		stop.Stop()
	})
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 4<<20)
	return &shim{t: t, in: stdin, lines: lines}
}

// ask sends a request and returns the next line of output.
func (s *shim) ask(line string) string {
	s.t.Helper()
	if _, err := s.in.Write([]byte(line)); err != nil {
		s.t.Fatal(err)
	}
	if !s.lines.Scan() {
		s.t.Fatalf("no response to %s", line)
	}
	return s.lines.Text()
}
