package dialer

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/internal/rendezvous"
)

// fakeDaemon records each start, and becomes ready when the test's listener exists.
const fakeDaemon = `#!/bin/sh
answer=$(cat "$SERVICE_CONFIG_DIR/answer")
echo started >> "$SERVICE_CONFIG_DIR/starts"
echo $PPID > "$SERVICE_CONFIG_DIR/parent"
env >> "$SERVICE_CONFIG_DIR/env"
case "$answer" in
quiet) exit 0 ;;
*) echo "$answer" >&3 ;;
esac
`

func newDaemon(t *testing.T, answer string) Daemon {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the fake daemon is a shell script")
	}
	dir := filepath.Join(t.TempDir(), "s")
	paths, err := rendezvous.PathsOf(dir)
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "serviced")
	if err := os.WriteFile(program, []byte(fakeDaemon), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "answer"), []byte(answer), 0o600); err != nil {
		t.Fatal(err)
	}
	return Daemon{Paths: paths, Program: program, Starter: os.Args[0]}
}

func listen(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
}

func (d Daemon) starts(t *testing.T) int {
	t.Helper()
	text, _ := os.ReadFile(filepath.Join(d.Paths.Dir, "starts"))
	return strings.Count(string(text), "started")
}

func TestConnect_ManyClientsStartOneDaemon(t *testing.T) {
	d := newDaemon(t, "ready\n")
	// The listener is created at the first start, like a daemon's listener before it reports that it is ready.
	go func() {
		for d.starts(t) == 0 {
			time.Sleep(time.Millisecond)
		}
		l, err := net.Listen("unix", d.Paths.MCP)
		if err == nil {
			t.Cleanup(func() { _ = l.Close() })
		}
	}()
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			conn, err := d.Connect(context.Background(), d.Paths.MCP)
			if err != nil {
				t.Errorf("Connect: %v", err)
				return
			}
			_ = conn.Close()
		})
	}
	all.Wait()
	if n := d.starts(t); n != 1 {
		t.Fatalf("%d daemons were started, want 1", n)
	}
	if info, err := os.Stat(d.Paths.Run); err != nil || info.Mode().Perm() != 0o700 {
		t.Fatalf("run directory: got %v, %v, want mode 0700", info, err)
	}
}

func TestConnect_DaemonGetsCleanEnvironment(t *testing.T) {
	d := newDaemon(t, "error: enough\n")
	t.Setenv("SERVICE_TELEMETRY", "0")
	t.Setenv("SERVICE_BACKEND_URL", "http://elsewhere")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "x")
	t.Setenv("LC_ALL", "C")
	_, _ = d.Connect(context.Background(), d.Paths.MCP)
	env, err := os.ReadFile(filepath.Join(d.Paths.Dir, "env"))
	if err != nil {
		t.Fatal(err)
	}
	for _, no := range []string{"SERVICE_TELEMETRY", "SERVICE_BACKEND_URL", "AWS_"} {
		if strings.Contains(string(env), no) {
			t.Errorf("the daemon inherited the variable %s", no)
		}
	}
	for _, yes := range []string{"SERVICE_CONFIG_DIR=" + d.Paths.Dir, "SERVICE_READY_FD=3", "LC_ALL=C", "PATH="} {
		if !strings.Contains(string(env), yes) {
			t.Errorf("the daemon lacks the variable %s", yes)
		}
	}
}

// An agent that ends its server kills all processes that it started. The daemon, which other agents use, must not be
// one of them.
func TestConnect_DaemonIsNoChildOfTheClient(t *testing.T) {
	d := newDaemon(t, "error: enough\n")
	for _, starter := range []string{d.Starter, d.Starter + "-missing", "/bin/false"} {
		d.Starter = starter
		_, err := d.Connect(t.Context(), d.Paths.MCP)
		if problem.CodeOf(err) != problem.CodeDaemonUnavailable || err.Error() != "start the daemon: enough" {
			t.Fatalf("starter %s: got %v, want the reason \"enough\"", starter, err)
		}
		parent, err := os.ReadFile(filepath.Join(d.Paths.Dir, "parent"))
		if err != nil {
			t.Fatal(err)
		}
		ours := strings.TrimSpace(string(parent)) == strconv.Itoa(os.Getpid())
		if ours != (starter != os.Args[0]) {
			t.Errorf("%s: the daemon's parent is %s, this process is %d", starter, parent, os.Getpid())
		}
	}
}

func TestConnect_StartFails(t *testing.T) {
	for answer, want := range map[string]string{
		"error: read config.yaml: line 3\n": "read config.yaml: line 3",
		"quiet":                             "exited before it was ready",
		"ready\n":                           "does not accept connections",
	} {
		d := newDaemon(t, answer)
		_, err := d.Connect(context.Background(), d.Paths.MCP)
		if p := problem.From(err); p == nil || !strings.Contains(p.Message, want) || !strings.Contains(p.FixHint,
			d.LogFile()) {
			t.Errorf("readiness line %q: got %v, want %q and the log", answer, err, want)
		}
		if n := d.starts(t); n != maxStarts && answer != "ready\n" {
			t.Errorf("readiness line %q: got %d starts, want %d", answer, n, maxStarts)
		}
	}
	d := newDaemon(t, "")
	d.Program += "-missing"
	_, err := d.Connect(context.Background(), d.Paths.MCP)
	if p := problem.From(err); p == nil || p.Code != problem.CodeProgramMissing || p.Retryable ||
		!strings.Contains(p.Message, d.Program) ||
		!strings.Contains(p.FixHint, "Install the service again") {
		t.Errorf("missing program: got %v (%+v), want %s with the next step", err, p, problem.CodeProgramMissing)
	}
}

func TestConnect_RefusesUnsafeDirectories(t *testing.T) {
	tests := map[string]func(d Daemon) error{
		"0777":    func(d Daemon) error { return os.Chmod(d.Paths.Dir, 0o777) },
		"run 770": func(d Daemon) error { return errors.Join(os.Mkdir(d.Paths.Run, 0o700), os.Chmod(d.Paths.Run, 0o770)) },
		"link": func(d Daemon) error {
			return errors.Join(os.Rename(d.Paths.Dir, d.Paths.Dir+"x"), os.Symlink(d.Paths.Dir+"x", d.Paths.Dir))
		},
		"run link": func(d Daemon) error { return os.Symlink(os.TempDir(), d.Paths.Run) },
		"file": func(d Daemon) error {
			return errors.Join(os.RemoveAll(d.Paths.Dir), os.WriteFile(d.Paths.Dir, nil, 0o600))
		},
		"parent 0777": func(d Daemon) error { return os.Chmod(filepath.Dir(d.Paths.Dir), 0o777) },
		"new in 0777": func(d Daemon) error {
			return errors.Join(os.RemoveAll(d.Paths.Dir), os.Chmod(filepath.Dir(d.Paths.Dir), 0o777))
		},
	}
	if os.Getuid() == 0 {
		tests["owner"] = func(d Daemon) error { return os.Chown(d.Paths.Dir, 4242, 4242) }
	}
	for name, spoil := range tests {
		t.Run(name, func(t *testing.T) {
			d := newDaemon(t, "ready\n")
			if err := spoil(d); err != nil {
				t.Fatal(err)
			}
			_, err := d.Connect(context.Background(), d.Paths.MCP)
			if p := problem.From(err); p == nil || p.Code != "unsafe_directory" || p.FixHint == "" {
				t.Fatalf("got error %v, want unsafe_directory with a hint", err)
			}
			if n := d.starts(t); n != 0 {
				t.Fatal("a daemon was started in an unsafe directory")
			}
		})
	}
}

func TestSandboxError_NamesPathAndSetting(t *testing.T) {
	const path = "/s/mcp.sock"
	e := problem.From(sandboxError(path, false, os.ErrPermission))
	if !strings.Contains(e.Message, path) || !strings.Contains(e.FixHint, path) || !errors.Is(e, os.ErrPermission) {
		t.Fatalf("error %q or hint %q does not name the path", e, e.FixHint)
	}
}

func TestDial_StartsNothing(t *testing.T) {
	d := newDaemon(t, "ready\n")
	if _, err := d.Dial(d.Paths.Control); !errors.Is(err, ErrNotRunning) {
		t.Fatalf("got error %v, want ErrNotRunning", err)
	}
	listen(t, d.Paths.Control)
	conn, err := d.Dial(d.Paths.Control)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := HalfClose(conn); err != nil {
		t.Fatal(err)
	}
	if d.starts(t) != 0 {
		t.Fatal("Dial started a daemon")
	}
}

// A daemon that is stopping holds the lock longer than it serves: the client waits for it and starts the next one.
func TestConnect_DaemonIsEnding(t *testing.T) {
	d := newDaemon(t, "error: another serviced runs\n")
	if err := d.prepare(); err != nil {
		t.Fatal(err)
	}
	ended, err := lock(t.Context(), filepath.Join(d.Paths.Run, rendezvous.DaemonLock))
	if err != nil {
		t.Fatal(err)
	}
	if !d.Held() {
		t.Error("Held is false although a daemon holds the directory")
	}
	go func() {
		for d.starts(t) == 0 {
			time.Sleep(time.Millisecond)
		}
		_ = os.WriteFile(filepath.Join(d.Paths.Dir, "answer"), []byte("ready\n"), 0o600)
		ended()
		for d.starts(t) == 1 {
			time.Sleep(time.Millisecond)
		}
		if l, err := net.Listen("unix", d.Paths.MCP); err == nil {
			t.Cleanup(func() { _ = l.Close() })
		}
	}()
	conn, err := d.Connect(t.Context(), d.Paths.MCP)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	if n := d.starts(t); n != 2 || d.Held() {
		t.Errorf("got %d starts, held %v; want 2, false", n, d.Held())
	}
}

// A client that gave up waiting for a lock must not acquire it later, because service-mcp runs for a long time and
// would keep the lock.
func TestLock_ReleasedAfterCancel(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, giveUp := context.WithCancel(t.Context())
	giveUp()
	for range 20 {
		if _, err := lock(ctx, path); !errors.Is(err, context.Canceled) {
			t.Fatalf("cancelled wait for a lock: got %v, want context.Canceled", err)
		}
	}
	unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if unlock, err = lock(ctx, path); err != nil {
		t.Fatalf("lock after both were released: %v", err)
	}
	unlock()
}
