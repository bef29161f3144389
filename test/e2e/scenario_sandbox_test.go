//go:build unix

package e2e

import (
	"bufio"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// nobody is the user id of the sandboxed agent if these tests run as root, because file modes do not restrict root.
const nobody = 65534

// sandboxed prepares a machine whose sockets exist but must not be used: connecting fails with EACCES. The returned
// function counts connections that succeed nevertheless.
func sandboxed(t *testing.T) (w *world, as func(*exec.Cmd) *exec.Cmd) {
	t.Helper()
	w = newWorld(t, "")
	root := filepath.Dir(w.dir)
	run := filepath.Join(w.dir, "run")
	if err := os.Mkdir(run, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"mcp.sock", "control.sock"} {
		path := filepath.Join(run, name)
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		if err := os.Chmod(path, 0); err != nil {
			t.Fatal(err)
		}
		go func() {
			if conn, err := l.Accept(); err == nil {
				conn.Close()
				t.Errorf("a client connected to %s, want no connection", name)
			} else if !errors.Is(err, net.ErrClosed) {
				t.Error(err)
			}
		}()
	}
	if os.Getuid() != 0 {
		return w, func(cmd *exec.Cmd) *exec.Cmd { return cmd }
	}
	for _, dir := range []string{w.dir, run, root} {
		if err := os.Chown(dir, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	// The sandboxed user may run the programs but not change them.
	if err := os.Chmod(filepath.Dir(bin), 0o755); err != nil {
		t.Fatal(err)
	}
	return w, func(cmd *exec.Cmd) *exec.Cmd {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		return cmd
	}
}

// If a sandbox forbids the sockets, service-mcp serves the tools in its own process, reports what to allow, and
// starts no daemon.
func TestSandbox_ServesToolsInProcess(t *testing.T) {
	t.Parallel()
	w, as := sandboxed(t)
	socket := filepath.Join(w.dir, "run", "mcp.sock")
	cmd := as(w.command("service-mcp"))
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
	stop := time.AfterFunc(30*time.Second, func() { cmd.Process.Kill() })
	defer stop.Stop()
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 4<<20)
	ask := func(line string) string {
		t.Helper()
		if _, err := stdin.Write([]byte(line)); err != nil {
			t.Fatal(err)
		}
		if !lines.Scan() {
			t.Fatalf("no response to %s", line)
		}
		if !json.Valid(lines.Bytes()) {
			t.Fatalf("service-mcp printed a line that is not JSON: %s", lines.Text())
		}
		return lines.Text()
	}
	if answer := ask(initialize); !strings.Contains(answer, `"serverInfo"`) {
		t.Errorf("response to initialize: got %s, want the server's answer", answer)
	}
	if _, err := stdin.Write([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n")); err != nil {
		t.Fatal(err)
	}
	if answer := ask(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}` + "\n"); !strings.Contains(answer,
		"createSimulatorSession") {
		t.Errorf("response to tools/list: got %s, want every tool", answer)
	}
	if answer := ask(call("whoAmI")); strings.Contains(answer, `"isError":true`) || !strings.Contains(answer, "inst_") {
		t.Errorf("result of whoAmI: got %s, want an install id", answer)
	}
	refused := ask(call("createSimulatorSession"))
	if !strings.Contains(refused, "sandbox_blocked") || !strings.Contains(refused, socket) ||
		!strings.Contains(refused, "fixHint") {
		t.Errorf("createSimulatorSession: got %s, want sandbox_blocked with the socket and a fixHint", refused)
	}
	stdin.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("service-mcp failed at the end of its input: %v", err)
	}
	if n := starts(w); n != 0 {
		t.Errorf("%d daemons started, want 0", n)
	}
}

func call(tool string) string {
	return `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"` + tool + `","arguments":{}}}` + "\n"
}

// servicectl reports once what the sandbox forbids and what to allow.
func TestSandbox_CommandLineExplains(t *testing.T) {
	t.Parallel()
	w, as := sandboxed(t)
	cmd := as(w.command("servicectl", "whoami"))
	out, err := cmd.CombinedOutput()
	socket := filepath.Join(w.dir, "run", "control.sock")
	if err == nil || cmd.ProcessState.ExitCode() != 2 {
		t.Errorf("servicectl: %v, want exit 2: %s", err, out)
	}
	if text := string(out); strings.Count(text, "permission denied") != 1 || !strings.Contains(text, socket) ||
		!strings.Contains(text, "sandbox's settings") {
		t.Errorf("the error does not name socket, cause and next step once each: %s", text)
	}
	if n := starts(w); n != 0 {
		t.Errorf("%d daemons started, want 0", n)
	}
}
