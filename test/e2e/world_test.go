//go:build unix

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/service-dev/service/test/pgtest"
	"github.com/service-dev/service/test/reaper"
)

// started is this test binary's PostgreSQL server, or nil until a test needs it.
var started atomic.Pointer[pgtest.Cluster]

// bin is the directory of the programs that TestMain built.
var bin string

func TestMain(m *testing.M) {
	if does := os.Getenv(stranger); does != "" {
		playStranger(strings.Split(does, " "))
		return
	}
	os.Exit(reaper.Run(func() int {
		dir, err := os.MkdirTemp("", "e2e")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		defer func() {
			if c := started.Load(); c != nil {
				c.Stop()
			}
		}()
		if bin = os.Getenv("SERVICE_E2E_BIN"); bin != "" { // tests with the tag release use an installed package
			return m.Run()
		}
		bin = filepath.Join(dir, "bin")
		build := exec.Command("make", "-s", "build", "BIN="+bin)
		build.Dir = filepath.Join("..", "..")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "make build: %v\n%s", err, out)
			return 1
		}
		return m.Run()
	}))
}

// missing skips a test on a developer's machine and fails it in CI.
func missing(t *testing.T, what, how string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s is missing: %s", what, how)
	}
	t.Skipf("SKIPPED, %s is missing: %s", what, how)
}

// world is one user's machine: a state directory, an environment, and a browser opener that only records URLs.
type world struct {
	t       *testing.T
	bin     string // directory of its programs
	dir     string // SERVICE_CONFIG_DIR
	project string // the agents' working directory
	opened  string // file with the recorded URLs, one per line
	env     []string
}

// newWorld creates a new machine; config is the content of its config.yaml or empty. Variables have the form
// KEY=VALUE.
func newWorld(t *testing.T, config string, variables ...string) *world {
	t.Helper()
	root, err := os.MkdirTemp("", "w")
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, bin: bin, dir: filepath.Join(root, "state"), project: filepath.Join(root, "project"),
		opened: filepath.Join(root, "opened")}
	tools := filepath.Join(root, "tools")
	for _, dir := range []string{w.dir, w.project, tools} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	opener := "#!/bin/sh\nprintf '%s\\n' \"$1\" >> '" + w.opened + "'\n"
	if err := os.WriteFile(filepath.Join(tools, "xdg-open"), []byte(opener), 0o755); err != nil {
		t.Fatal(err)
	}
	if config != "" {
		if err := os.WriteFile(filepath.Join(w.dir, "config.yaml"), []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.env = append([]string{
		"PATH=" + tools + string(os.PathListSeparator) + os.Getenv("PATH"),
		"HOME=" + root, "SERVICE_CONFIG_DIR=" + w.dir, "DISPLAY=:99", "LANG=C.UTF-8",
	}, variables...)
	t.Cleanup(func() {
		w.ctl("daemon", "stop")
		if pid := w.daemonPID(); pid > 0 {
			waitGone(pid, 10*time.Second)
		}
		if t.Failed() {
			log, _ := os.ReadFile(filepath.Join(w.dir, "log", "serviced.log"))
			t.Logf("serviced.log:\n%s", tail(string(log), 60))
		}
		os.RemoveAll(root)
	})
	return w
}

// with returns the same machine with additional environment variables.
func (w *world) with(variables ...string) *world {
	other := *w
	other.env = append(append([]string{}, w.env...), variables...)
	return &other
}

func (w *world) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(w.bin, name), args...)
	cmd.Env = w.env
	cmd.Dir = filepath.Dir(w.dir)
	return cmd
}

// ctl runs servicectl without a terminal and returns its output and exit code.
func (w *world) ctl(args ...string) (stdout, stderr string, code int) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(w.bin, "servicectl"), args...)
	cmd.Env, cmd.Dir = w.env, filepath.Dir(w.dir)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		w.t.Fatalf("servicectl %v: %v", args, err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// daemonPID returns the pid in run/daemon.json, or 0 if there is none.
func (w *world) daemonPID() int {
	var record struct{ PID int }
	if !readJSON(filepath.Join(w.dir, "run", "daemon.json"), &record) {
		return 0
	}
	return record.PID
}

// openedURLs returns the URLs that were passed to the browser opener.
func (w *world) openedURLs() []string {
	data, _ := os.ReadFile(w.opened)
	return strings.Fields(string(data))
}

func waitGone(pid int, limit time.Duration) bool {
	return eventually(limit, func() bool { return syscall.Kill(pid, 0) != nil })
}

// eventually polls until yes returns true or the limit has passed, because there is no event from other processes to
// wait for.
func eventually(limit time.Duration, yes func() bool) bool {
	deadline := time.Now().Add(limit)
	for !yes() {
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(20 * time.Millisecond)
	}
	return true
}

func must(t *testing.T, what string, yes func() bool) {
	t.Helper()
	if !eventually(time.Minute, yes) {
		t.Fatalf("not true within a minute: %s", what)
	}
}

func tail(text string, lines int) string {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// remoteBackend is a separate service-backend process on the given database.
type remoteBackend struct {
	program string
	url     string
	env     []string
	cmd     *exec.Cmd
	t       *testing.T
	port    int
	logs    string
}

func startBackend(t *testing.T, database string, variables ...string) *remoteBackend {
	t.Helper()
	return startProgram(t, filepath.Join(bin, "service-backend"), database, variables...)
}

// startProgram is like startBackend, with another version's program.
func startProgram(t *testing.T, program, database string, variables ...string) *remoteBackend {
	t.Helper()
	dir, err := os.MkdirTemp("", "b")
	if err != nil {
		t.Fatal(err)
	}
	b := &remoteBackend{program: program, t: t, port: freePort(t), logs: filepath.Join(dir, "log")}
	b.url = "http://localhost:" + strconv.Itoa(b.port)
	if database == "" {
		database = filepath.Join(dir, "service.db")
	}
	b.env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir,
		"SERVICE_BACKEND_DATABASE=" + database,
		"SERVICE_BACKEND_DATA_DIR=" + dir,
		"SERVICE_BACKEND_LISTEN=localhost:" + strconv.Itoa(b.port),
		"SERVICE_BACKEND_BASE_URL=" + b.url,
		"SERVICE_BACKEND_HMAC_KEY=" + strings.Repeat("5a", 32),
		"SERVICE_BACKEND_CREDENTIALS_KEY=" + strings.Repeat("a5", 32),
		"SERVICE_BACKEND_LINK_POLL_INTERVAL=1",
		"SERVICE_BACKEND_SUPPORT_CONTACT=support@example.org",
	}, variables...)
	t.Cleanup(func() {
		b.stop()
		if t.Failed() {
			log, _ := os.ReadFile(b.logs)
			t.Logf("service-backend log:\n%s", tail(string(log), 60))
		}
		os.RemoveAll(dir)
	})
	b.start()
	return b
}

func (b *remoteBackend) start() {
	b.t.Helper()
	log, err := os.OpenFile(b.logs, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		b.t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(b.program)
	cmd.Env, cmd.Stdout, cmd.Stderr = b.env, log, log
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	b.cmd = cmd
	must(b.t, "service-backend answers /api/health", func() bool { return get(b.url+"/api/health") == 200 })
}

func (b *remoteBackend) stop() {
	if b.cmd == nil {
		return
	}
	b.cmd.Process.Signal(syscall.SIGTERM)
	b.cmd.Wait()
	b.cmd = nil
}

// admin runs service-backend admin on the same database.
func (b *remoteBackend) admin(args ...string) string {
	b.t.Helper()
	cmd := exec.Command(b.program, append([]string{"admin"}, args...)...)
	cmd.Env = b.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		b.t.Fatalf("service-backend admin %v: %v\n%s", args, err, out)
	}
	return string(out)
}
