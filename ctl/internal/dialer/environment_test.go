package dialer

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/internal/rendezvous"
)

// A daemon started in another environment, whose sockets are elsewhere, is found through its record. If its sockets are
// missing, the error contains both paths, and no second daemon is started.
func TestDial_FindsTheDaemonOfAnotherEnvironment(t *testing.T) {
	d := newDaemon(t, "ready\n")
	other := filepath.Join(t.TempDir(), "e")
	for _, dir := range []string{d.Paths.Run, other} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	listener, err := net.Listen("unix", filepath.Join(other, "mcp.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	record := `{
  "pid": 42,
  "controlSocket": "` + filepath.Join(other, "control.sock") + `",
  "mcpSocket": "` + filepath.Join(other, "mcp.sock") + `"
}
`
	if err := os.WriteFile(filepath.Join(d.Paths.Run, rendezvous.DaemonRecord), []byte(record), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Dial(d.Paths.MCP); !errors.Is(err, ErrNotRunning) {
		t.Fatalf("a record without a daemon that holds the directory: %v, want ErrNotRunning", err)
	}
	unlock, err := lock(t.Context(), filepath.Join(d.Paths.Run, rendezvous.DaemonLock))
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if d.PID() != 42 {
		t.Errorf("pid %d, want 42", d.PID())
	}
	for name, connect := range map[string]func() (Conn, error){
		"Dial":    func() (Conn, error) { return d.Dial(d.Paths.MCP) },
		"Connect": func() (Conn, error) { return d.Connect(t.Context(), d.Paths.MCP) },
	} {
		conn, err := connect()
		if err != nil {
			t.Errorf("%s: %v, want the daemon's socket", name, err)
			continue
		}
		_ = conn.Close()
	}
	_, err = d.Connect(t.Context(), d.Paths.Control) // does not exist
	p := problem.From(err)
	if p == nil || p.Retryable || !strings.Contains(p.Message, filepath.Join(other, "control.sock")) ||
		!strings.Contains(p.Message, d.Paths.Control) || d.starts(t) != 0 {
		t.Errorf("got %v and %d starts, want an error with both paths and no start", err, d.starts(t))
	}
	if err := os.Chmod(other, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Dial(d.Paths.MCP); problem.CodeOf(err) != "unsafe_directory" {
		t.Errorf("with a directory that others may change: %v, want it refused", err)
	}
}

// Problems that a retry cannot solve are not reported as retryable, and the fix contains the setting to change.
func TestProblems_ThatDoNotPassAreNotRetryable(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the paths are those of Unix")
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ home, dir string }{
		{"", ""}, {"relative", ""}, {file, ""}, {"/", "relative"}, {"/", file}, {"/", file + "/below"},
		{"/", "/" + strings.Repeat("x/", 3000)},
	} {
		t.Setenv("HOME", c.home)
		t.Setenv("SERVICE_CONFIG_DIR", c.dir)
		d, err := Find()
		if err == nil {
			_, err = d.Connect(t.Context(), d.Paths.MCP)
		}
		if p := problem.From(err); p == nil || p.Retryable || !strings.Contains(p.FixHint, "SERVICE_CONFIG_DIR") {
			t.Errorf("HOME=%s SERVICE_CONFIG_DIR=%.50s: %v, %+v; want a problem that does not pass", c.home, c.dir, err, p)
		}
	}
	d := newDaemon(t, "error: directory /x: it belongs to another user\n")
	_, err := d.Connect(t.Context(), d.Paths.MCP)
	if p := problem.From(err); p == nil || p.Retryable || !strings.Contains(p.Message, "another user") {
		t.Errorf("a daemon that refuses to start: %v, %+v; want a problem that does not pass", err, p)
	}
}

// A first run as root with another user's HOME, as with `sudo -E`, does not create files there.
func TestConnect_RefusesRootInAnotherUsersHome(t *testing.T) {
	d := newDaemon(t, "ready\n")
	if os.Geteuid() != 0 {
		t.Skip("only root may create files in other users' directories")
	}
	home := t.TempDir()
	if err := os.Chown(home, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	var err error
	if d.Paths, err = rendezvous.PathsOf(filepath.Join(home, ".service")); err != nil {
		t.Fatal(err)
	}
	_, err = d.Connect(t.Context(), d.Paths.MCP)
	p := problem.From(err)
	left, readErr := os.ReadDir(home)
	if p == nil || p.Code != "unsafe_directory" || !strings.Contains(p.FixHint, "without sudo") || readErr != nil ||
		len(left) != 0 {
		t.Errorf("got %v, %+v and files %v, want it refused before anything is written", err, p, left)
	}
}
