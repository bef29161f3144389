//go:build unix

package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/service-dev/service/proto/control"
	"github.com/service-dev/service/test/controltest"
)

// stranger is the environment variable that makes this test binary act as another user's program. It contains socket
// paths.
const stranger = "APP_TEST_STRANGER"

// unusedUID is a user id that owns no files on this system.
const unusedUID = 65534

// speakAsStranger connects to the sockets as another user and prints each answer on its own line.
func speakAsStranger(paths []string) {
	for _, path := range paths {
		conn, err := net.Dial("unix", path)
		if err != nil {
			fmt.Println("dial:", err)
			continue
		}
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		// The first bytes of both protocols: HTTP/2 with empty settings, and an agent's handshake with a request.
		hello := "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"
		if strings.HasSuffix(path, "mcp.sock") {
			hello = `{"mcp":1,"protocolMin":1,"protocolMax":1}` + "\n" + `{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n"
		}
		_, _ = io.WriteString(conn, hello) // the daemon may already have closed it
		heard, _ := io.ReadAll(conn)
		conn.Close()
		fmt.Printf("%q\n", heard)
	}
}

// A process of another user that can open the sockets, because their modes were relaxed, is refused on both before any
// handler runs. The owner is still served.
func TestAnotherUserIsRefused(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: becoming another user needs root")
	}
	dir := short(t)
	d := start(t, dir, Options{})
	for path, mode := range map[string]os.FileMode{dir: 0o711, d.paths.Run: 0o711, d.paths.Control: 0o777,
		d.paths.MCP: 0o777} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	place, err := os.MkdirTemp("/tmp", "n")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(place)
	self, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(place, "self")
	if err := os.WriteFile(program, self, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(place, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program)
	cmd.Dir, cmd.Env = "/", []string{stranger + "=" + d.paths.Control + "," + d.paths.MCP}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: unusedUID, Gid: unusedUID}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	said := strings.Split(string(out), "\n")
	if said[0] != `""` {
		t.Errorf("control.sock sent another user %s, want nothing", said[0])
	}
	if !strings.Contains(said[1], `\"code\":\"refused\"`) || !strings.Contains(said[1], "another user") ||
		strings.Contains(said[1], "jsonrpc") {
		t.Errorf("mcp.sock sent another user %s, want a refusal in the handshake reply", said[1])
	}
	st, err := controltest.Call(t.Context(), d.ctl, control.GetStatus, control.None{})
	if err != nil || st.MCPClients != 0 {
		t.Errorf("the owner is no longer served: %v, %v", st, err)
	}
	log, err := os.ReadFile(filepath.Join(dir, "log", "serviced.log"))
	if err != nil || !strings.Contains(string(log), "another user") {
		t.Errorf("the log does not mention another user: %v", err)
	}
}

// with returns a directory of adapters in which a shell script replaces one of them.
func with(t *testing.T, name, script string) string {
	t.Helper()
	dir := t.TempDir()
	file := "service-plugin-" + name
	err := errors.Join(
		os.Link(filepath.Join(adapterDir, "serviced"), filepath.Join(dir, "serviced")),
		os.WriteFile(filepath.Join(dir, file), []byte("#!/bin/sh\n"+script), 0o755),
		list(dir, "serviced", file),
	)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

var elsewhere = control.Caller{Env: map[string]string{"SERVICE_BACKEND_URL": "http://127.0.0.1:1",
	"SERVICE_NO_AUTO_OPEN": "1"}}

var here = control.Caller{Env: map[string]string{"SERVICE_NO_AUTO_OPEN": "1"}}

// While an adapter hangs during startup, the daemon answers all other requests and can be stopped. Calls that
// wait for the adapter end when their callers do.
func TestHangingAdapterBlocksNobody(t *testing.T) {
	d := start(t, short(t), Options{AdapterDir: with(t, "browsersim", "exec sleep 1000\n")})
	waiting, giveUp := context.WithCancel(t.Context())
	stopOnError := make(chan error, 3)
	for range cap(stopOnError) {
		go func() {
			_, err := d.callTool(waiting, "createSimulatorSession", elsewhere)
			stopOnError <- err
		}()
	}
	hangs := func() bool { return d.adapter(t, "browsersim").State == "starting" }
	await(t, "the adapter is being started", hangs)
	quick, cancel := context.WithTimeout(t.Context(), 9*time.Second)
	defer cancel()
	if _, err := controltest.Call(quick, d.ctl, control.Whoami, control.WhoamiRequest{}); err != nil {
		t.Errorf("whoami: %v", err)
	}
	if _, err := controltest.Call(quick, d.ctl, control.Logout, control.None{}); err != nil {
		t.Errorf("logout: %v", err)
	}
	if r, err := d.callTool(quick, "startLocalSimulation", here); err != nil || r.IsError {
		t.Errorf("startLocalSimulation: %v, %v; want no error", r, err)
	}
	if !hangs() {
		t.Error("the adapter no longer hangs, so the test proves nothing")
	}
	giveUp()
	for range cap(stopOnError) {
		if err := <-stopOnError; err == nil {
			t.Error("a call to the hanging adapter was answered")
		}
	}
	if _, err := controltest.Call(quick, d.ctl, control.Stop, control.None{}); err != nil {
		t.Errorf("stop: %v", err)
	}
	d.end(t)
}

// Five crashes within a minute open the circuit breaker of one adapter. Status reports the reason and the end of the
// pause, and everything else still works.
func TestBreakerLeavesTheRestAlone(t *testing.T) {
	d := start(t, short(t), Options{AdapterDir: with(t, "backendhttp", "exit 3\n")})
	await(t, "the breaker is open", func() bool {
		_, _ = d.callTool(t.Context(), "listProjects", elsewhere)
		return strings.Contains(d.adapter(t, "backendhttp").LastError, "5 crashes within a minute")
	})
	p := d.adapter(t, "backendhttp")
	if p.State != "backoff" || p.Restarts != 5 ||
		p.ResumeMs-p.CrashedMs != time.Minute.Milliseconds() || p.PID != 0 {
		t.Errorf("status: %v", p)
	}
	r, err := d.callTool(t.Context(), "listProjects", elsewhere)
	if err != nil || !r.IsError || !strings.Contains(string(r.Structured), "adapter_unavailable") ||
		!strings.Contains(string(r.Structured), "fixHint") {
		t.Errorf("a call to the adapter: %v, %v; want adapter_unavailable", r, err)
	}
	if r, err := d.callTool(t.Context(), "createSimulatorSession", here); err != nil || r.IsError {
		t.Errorf("the embedded backend: %v, %v; want no error", r, err)
	}
	if r, err := d.callTool(t.Context(), "startLocalSimulation", here); err != nil || r.IsError {
		t.Errorf("startLocalSimulation: %v, %v; want no error", r, err)
	}
	if p := d.adapter(t, "backendhttp"); p.Restarts != 5 {
		t.Errorf("the adapter was restarted immediately: %v", p)
	}
}

// callTool calls a tool and returns its result.
func (d *testDaemon) callTool(ctx context.Context, name string, who control.Caller) (*control.ToolResult, error) {
	return controltest.Tool(ctx, d.ctl.As(who), name, "{}")
}

// adapter returns the state of one adapter as status reports it.
func (d *testDaemon) adapter(t *testing.T, name string) control.Plugin {
	t.Helper()
	st, err := controltest.Call(t.Context(), d.ctl, control.GetStatus, control.None{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range st.Plugins {
		if p.Name == name {
			return p
		}
	}
	t.Fatalf("no adapter %s in %v", name, st)
	return control.Plugin{}
}

func await(t *testing.T, what string, yes func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !yes(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not true after 20 s: %s", what)
		}
	}
}

// Status reports whether the program was replaced or deleted, and counts open resources.
func TestStatusOfTheDaemonItself(t *testing.T) {
	path := filepath.Join(t.TempDir(), "serviced")
	put := func(text string) {
		t.Helper()
		if err := os.WriteFile(path+".new", []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	put("one")
	p := programAt(path)
	if p.isReplaced() || p.isGone() {
		t.Error("an unchanged program counts as replaced or deleted")
	}
	put("two")
	if !p.isReplaced() || p.isGone() {
		t.Error("a replaced program does not count as replaced")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if p.isReplaced() || !p.isGone() {
		t.Errorf("deleted program: isReplaced %t, isGone %t; want false, true", p.isReplaced(), p.isGone())
	}

	// An upgrade that switches a link and deletes the old version.
	put("three")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	p = programAt(link)
	if p.isReplaced() || p.isGone() {
		t.Error("an unchanged link counts as replaced or deleted")
	}
	err := errors.Join(os.WriteFile(path+".next", []byte("four"), 0o755), os.Remove(path), os.Remove(link),
		os.Symlink(path+".next", link))
	if err != nil {
		t.Fatal(err)
	}
	if !p.isReplaced() || !p.isDeleted() || p.isGone() {
		t.Errorf("a program that was deleted behind a switched link: isReplaced %t, isDeleted %t, isGone %t; "+
			"want true, true, false", p.isReplaced(), p.isDeleted(), p.isGone())
	}

	d := start(t, short(t), Options{})
	if _, err := d.callTool(t.Context(), "startLocalSimulation", here); err != nil {
		t.Fatal(err)
	}
	st, err := controltest.Call(t.Context(), d.ctl, control.GetStatus, control.None{})
	if err != nil || st.Sessions != 1 || st.Polling != 0 || st.Program == "" || st.Replaced ||
		st.SocketActivated || st.ProtocolMax == 0 {
		t.Fatalf("status: %v, %v; want one session and an unchanged program", st, err)
	}
	if sim := d.adapter(t, "localsim"); sim.SinceMs == 0 || sim.CrashedMs != 0 || sim.State != "running" {
		t.Errorf("localsim: %v", sim)
	}
}
