//go:build unix

package app

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/service-dev/service/internal/rendezvous"
	"github.com/service-dev/service/proto/control"
	"github.com/service-dev/service/test/controltest"
	"github.com/service-dev/service/test/reaper"
)

// adapterDir contains the program with the adapters and their manifest.
var adapterDir string

func TestMain(m *testing.M) {
	if os.Getenv(stranger) != "" {
		speakAsStranger(strings.Split(os.Getenv(stranger), ","))
		return
	}
	// The tests mostly wait for other programs.
	reaper.Parallel(6)
	os.Exit(reaper.Run(func() int {
		var err error
		if adapterDir, err = os.MkdirTemp("", "adapters"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(adapterDir)
		out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", adapterDir+"/",
			"github.com/service-dev/service/daemon/serviced").CombinedOutput()
		if err != nil {
			fmt.Fprintf(os.Stderr, "building the adapters: %v\n%s", err, out)
			return 1
		}
		if err := list(adapterDir, "serviced"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}))
}

// list writes the manifest of files in a directory.
func list(dir string, files ...string) error {
	var manifest strings.Builder
	for _, file := range files {
		data, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			return err
		}
		fmt.Fprintf(&manifest, "%x  %s\n", sha256.Sum256(data), file)
	}
	return os.WriteFile(filepath.Join(dir, "plugins.sha256"), []byte(manifest.String()), 0o644)
}

// testDaemon is a daemon that runs in this process until the test ends.
type testDaemon struct {
	paths       rendezvous.Paths
	stop        context.CancelFunc
	stopOnError chan error
	ctl         *controltest.Client
}

func start(t *testing.T, dir string, o Options) *testDaemon {
	t.Helper()
	o.Dir = dir
	if o.AdapterDir == "" {
		o.AdapterDir = adapterDir
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	fd, err := syscall.Dup(int(w.Fd())) // the daemon owns and closes its descriptor
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	t.Setenv(rendezvous.ReadyVar, fmt.Sprint(fd))
	d := &testDaemon{paths: paths(t, dir), stopOnError: make(chan error, 1)}
	ctx, stop := context.WithCancel(context.Background())
	d.stop = stop
	go func() { d.stopOnError <- Run(ctx, o) }()
	line, err := bufio.NewReader(r).ReadString('\n')
	if line != "ready\n" {
		stop()
		t.Fatalf("readiness line %q (error %v), want ready", line, err)
	}
	d.ctl = controltest.New(t, d.paths.Control)
	t.Cleanup(func() {
		stop()
		d.end(t)
	})
	return d
}

// end waits until the daemon has stopped without an error. It may be called again.
func (d *testDaemon) end(t *testing.T) {
	t.Helper()
	select {
	case err := <-d.stopOnError:
		if err != nil {
			t.Errorf("the daemon ended with %v, want no error", err)
		}
		d.stopOnError <- nil
	case <-time.After(time.Minute):
		t.Fatal("the daemon did not exit within a minute")
	}
}

func TestStatusAndWhoami(t *testing.T) {
	d := start(t, short(t), Options{})
	st, err := controltest.Call(t.Context(), d.ctl, control.GetStatus, control.None{})
	if err != nil {
		t.Fatal(err)
	}
	if st.PID != os.Getpid() || st.ControlSocket != d.paths.Control ||
		!strings.HasPrefix(st.InstallID, "inst_") ||
		st.Link.State != "not_linked" || st.Consent.State != "unset" ||
		st.Backend.Kind != "embedded" || len(st.Plugins) != 5 {
		t.Fatalf("status: %v", st)
	}
	for _, p := range st.Plugins {
		if p.State != "stopped" {
			t.Errorf("adapter %s runs before it is needed", p.Name)
		}
	}
	who, err := controltest.Call(t.Context(), d.ctl, control.Whoami, control.WhoamiRequest{})
	if err != nil || who.Linked == nil || *who.Linked || who.InstallID != st.InstallID {
		t.Fatalf("whoami: %v, %v; want not_linked with the install id of status", who, err)
	}
	var rec daemonRecord
	data, err := os.ReadFile(filepath.Join(d.paths.Run, rendezvous.DaemonRecord))
	if err != nil || json.Unmarshal(data, &rec) != nil || rec.PID != os.Getpid() ||
		rec.ControlMin == 0 || rec.ControlMax == 0 || rec.MCPMin == 0 || rec.MCPMax == 0 {
		t.Fatalf("daemon.json is %s (error %v); want the pid of this process and both protocol ranges", data, err)
	}
}

func TestGatedToolOverTheEmbeddedBackend(t *testing.T) {
	d := start(t, short(t), Options{})
	r, err := controltest.Tool(t.Context(), d.ctl.As(here), "createSimulatorSession", "{}")
	if err != nil {
		t.Fatal(err)
	}
	var out struct{ Status, UserCode, VerificationURL, FixHint string }
	if err := json.Unmarshal(r.Structured, &out); err != nil || out.Status != "auth_required" ||
		len(out.UserCode) != 9 || !strings.Contains(out.VerificationURL, out.UserCode) || out.FixHint == "" {
		t.Fatalf("result: %s, %v; want auth_required", r.Structured, err)
	}
	log, err := os.ReadFile(filepath.Join(d.paths.Dir, "log", "serviced.log"))
	if err != nil || strings.Contains(string(log), "sdc_") {
		t.Fatalf("the log contains a device code, or is missing: %v", err)
	}
}

func TestLoginIssuesItsOwnCodeAndCancelStopsIt(t *testing.T) {
	d := start(t, short(t), Options{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stream, err := controltest.Stream(ctx, d.ctl.As(here), control.Login, control.LoginRequest{})
	if err != nil {
		t.Fatal(err)
	}
	first, err := stream.Next()
	if err != nil || first.Code == nil || first.Code.UserCode == "" {
		t.Fatalf("%v, %v", first, err)
	}
	second, err := stream.Next()
	if err != nil || second.Opened == nil || second.Opened.Opened {
		t.Fatalf("%v, %v", second, err)
	}
	cancel()
	if _, err := os.Stat(filepath.Join(d.paths.Dir, "auth.json")); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("auth.json: %v", err)
	}
}

func TestAgentIsServed(t *testing.T) {
	d := start(t, short(t), Options{})
	conn, err := net.Dial("unix", d.paths.MCP)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	io.WriteString(conn, `{"mcp":1,"protocolMin":1,"protocolMax":1,"version":"1","client":"test"}`+"\n"+
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`+"\n")
	lines := bufio.NewScanner(conn)
	if !lines.Scan() || !strings.Contains(lines.Text(), `"ok":true`) {
		t.Fatalf("preface: %q", lines.Text())
	}
	if !lines.Scan() || !strings.Contains(lines.Text(), `"serverInfo"`) {
		t.Fatalf("initialize: got %q, want serverInfo", lines.Text())
	}
}

func TestSecondDaemonByHand(t *testing.T) {
	d := start(t, short(t), Options{})
	if err := Run(t.Context(), Options{Dir: d.paths.Dir}); !errors.Is(err, ErrRunning) {
		t.Fatalf("got %v", err)
	}
	if _, err := controltest.Call(t.Context(), d.ctl, control.GetStatus, control.None{}); err != nil {
		t.Fatalf("the first daemon stopped answering: %v", err)
	}
}

func TestStopDrains(t *testing.T) {
	d := start(t, short(t), Options{Managed: true})
	if _, err := controltest.Call(t.Context(), d.ctl, control.Stop, control.None{}); err != nil {
		t.Fatal(err)
	}
	d.end(t)
	if _, err := os.Stat(d.paths.Control); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("the control socket was left behind: %v", err)
	}
}

func TestDeletedDirectoryEndsTheDaemon(t *testing.T) {
	dir := short(t)
	d := start(t, dir, Options{Managed: true})
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	d.end(t)
	if _, err := os.Stat(filepath.Join(dir, "install.json")); !errors.Is(err, os.ErrNotExist) {
		t.Fatal("the stopping daemon wrote into the next daemon's directory")
	}
}

func TestDeletedSocketEndsTheDaemonAndMakesRoom(t *testing.T) {
	dir := short(t)
	d := start(t, dir, Options{Managed: true})
	if err := os.Remove(d.paths.MCP); err != nil {
		t.Fatal(err)
	}
	d.end(t)
	next := start(t, dir, Options{Managed: true})
	if _, err := controltest.Call(t.Context(), next.ctl, control.GetStatus, control.None{}); err != nil {
		t.Fatal(err)
	}
}

func TestIdleDaemonEnds(t *testing.T) {
	dir := short(t)
	if err := os.WriteFile(filepath.Join(dir, "config.yaml"), []byte("idle_timeout: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, dir, Options{}).end(t)
}

func TestDoctor(t *testing.T) {
	d := start(t, short(t), Options{})
	r, err := controltest.Call(t.Context(), d.ctl, control.RunDoctor, control.None{})
	if err != nil || len(r.Checks) < 6 {
		t.Fatalf("%v, %v", r, err)
	}
	for _, c := range r.Checks {
		if c.State != "ok" {
			t.Errorf("%v", c)
		}
	}
	r, err = controltest.Call(t.Context(), d.ctl.As(elsewhere), control.RunDoctor, control.None{})
	if err != nil {
		t.Fatal(err)
	}
	failed := 0
	for _, c := range r.Checks {
		if c.State == "fail" {
			failed++
			if c.Fix == "" {
				t.Errorf("a failed check has no fix: %v", c)
			}
		}
	}
	if failed == 0 {
		t.Error("no check reports the missing backend")
	}
}

// An agent in a sandbox is served even if the state directory can be neither used nor created.
func TestInProcess(t *testing.T) {
	testInProcess(t, short(t), "mcp.sock")
	if runtime.GOOS == "linux" {
		const dir = "/proc/none/.service" // not even root can create it
		testInProcess(t, dir, "this agent cannot use the state directory "+dir)
	}
}

func testInProcess(t *testing.T, dir, reason string) {
	in, out := io.Pipe()
	answers, answer := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- InProcess(t.Context(), Options{Dir: dir, Stderr: io.Discard}, in, answer) }()
	lines := bufio.NewScanner(answers)
	lines.Buffer(nil, 1<<20)
	ask := func(line string) string {
		io.WriteString(out, line+"\n")
		if !lines.Scan() {
			t.Fatal("the agent received no answer")
		}
		return lines.Text()
	}
	ask(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	io.WriteString(out, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
	if got := ask(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"whoAmI","arguments":{}}}`); !strings.Contains(got, "inst_") {
		t.Errorf("whoAmI: %s", got)
	}
	got := ask(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"createSimulatorSession","arguments":{}}}`)
	if !strings.Contains(got, `"isError":true`) || strings.Contains(got, `"retryable":true`) {
		t.Errorf("createSimulatorSession: got %s, want an error that does not pass", got)
	}
	got = ask(`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"startLocalSimulation","arguments":{}}}`)
	if !strings.Contains(got, "sandbox_blocked") || !strings.Contains(got, reason) ||
		strings.Contains(got, `"retryable":true`) {
		t.Errorf("startLocalSimulation: got %s, want sandbox_blocked with %s", got, reason)
	}
	out.Close()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
