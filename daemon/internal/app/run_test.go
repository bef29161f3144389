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

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/service-dev/service/internal/rendezvous"
	controlv1 "github.com/service-dev/service/proto/control/v1"
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
	ctl         controlv1.ControlClient
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
	conn, err := grpc.NewClient("unix:"+d.paths.Control, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	d.ctl = controlv1.NewControlClient(conn)
	t.Cleanup(func() {
		conn.Close()
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
	st, err := d.ctl.Status(t.Context(), &controlv1.StatusRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if st.GetPid() != int64(os.Getpid()) || st.GetControlSocket() != d.paths.Control ||
		!strings.HasPrefix(st.GetInstallId(), "inst_") ||
		st.GetLink().GetState() != "not_linked" || st.GetConsent().GetState() != "unset" ||
		st.GetBackend().GetKind() != "embedded" || len(st.GetPlugins()) != 5 {
		t.Fatalf("status: %v", st)
	}
	for _, p := range st.GetPlugins() {
		if p.GetState() != "stopped" {
			t.Errorf("adapter %s runs before it is needed", p.GetName())
		}
	}
	who, err := d.ctl.Whoami(t.Context(), &controlv1.WhoamiRequest{})
	if err != nil || who.GetVerdict() != "not_linked" || who.GetInstallId() != st.GetInstallId() {
		t.Fatalf("whoami: %v, %v; want not_linked with the install id of status", who, err)
	}
	var rec daemonRecord
	data, err := os.ReadFile(filepath.Join(d.paths.Run, rendezvous.DaemonRecord))
	if err != nil || json.Unmarshal(data, &rec) != nil || rec.PID != os.Getpid() {
		t.Fatalf("daemon.json is %s (error %v); want the pid of this process", data, err)
	}
}

func TestGatedToolOverTheEmbeddedBackend(t *testing.T) {
	d := start(t, short(t), Options{})
	stream, err := d.ctl.CallTool(t.Context(), &controlv1.CallToolRequest{
		Name: "createSimulatorSession", Caller: &controlv1.Caller{Env: map[string]string{"SERVICE_NO_AUTO_OPEN": "1"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for {
		r, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if r.GetResult() == nil {
			continue
		}
		var out struct{ Status, UserCode, VerificationURL, FixHint string }
		if err := json.Unmarshal([]byte(r.GetResult().GetStructured()), &out); err != nil || out.Status != "auth_required" ||
			len(out.UserCode) != 9 || !strings.Contains(out.VerificationURL, out.UserCode) || out.FixHint == "" {
			t.Fatalf("result: %v, %v; want auth_required", r, err)
		}
		break
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
	stream, err := d.ctl.Login(ctx,
		&controlv1.LoginRequest{Caller: &controlv1.Caller{Env: map[string]string{"SERVICE_NO_AUTO_OPEN": "1"}}})
	if err != nil {
		t.Fatal(err)
	}
	first, err := stream.Recv()
	if err != nil || first.GetCode().GetUserCode() == "" {
		t.Fatalf("%v, %v", first, err)
	}
	second, err := stream.Recv()
	if err != nil || second.GetOpened() == nil || second.GetOpened().GetOpened() {
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
	if _, err := d.ctl.Status(t.Context(), &controlv1.StatusRequest{}); err != nil {
		t.Fatalf("the first daemon stopped answering: %v", err)
	}
}

func TestStopDrains(t *testing.T) {
	d := start(t, short(t), Options{Managed: true})
	if _, err := d.ctl.Stop(t.Context(), &controlv1.StopRequest{}); err != nil {
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
	if _, err := next.ctl.Status(t.Context(), &controlv1.StatusRequest{}); err != nil {
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
	r, err := d.ctl.Doctor(t.Context(), &controlv1.DoctorRequest{})
	if err != nil || len(r.GetChecks()) < 6 {
		t.Fatalf("%v, %v", r, err)
	}
	for _, c := range r.GetChecks() {
		if c.GetState() != "ok" {
			t.Errorf("%v", c)
		}
	}
	r, err = d.ctl.Doctor(t.Context(),
		&controlv1.DoctorRequest{Caller: &controlv1.Caller{Env: map[string]string{"SERVICE_BACKEND_URL": "http://127.0.0.1:1"}}})
	if err != nil {
		t.Fatal(err)
	}
	failed := 0
	for _, c := range r.GetChecks() {
		if c.GetState() == "fail" {
			failed++
			if c.GetFix() == "" {
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
