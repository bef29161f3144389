package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// activator acts like systemd with serviced.socket and serviced.service: it listens, starts the daemon on the first
// connection, receives its notifications, and starts it again on the first connection after it has ended.
type activator struct {
	w      *world
	files  []*os.File // the sockets
	inodes map[string]os.FileInfo
	notify string
	stops  chan struct{} // receives a value each time a daemon reports that it is stopping
	end    context.CancelFunc
	done   chan struct{}

	mu    sync.Mutex
	said  []string
	ended []string // how each daemon process ended: its error or <nil>
}

// startActivator listens on the daemon's sockets, replacing existing ones.
func startActivator(w *world) *activator {
	t := w.t
	t.Helper()
	run := filepath.Join(w.dir, "run")
	if err := os.MkdirAll(run, 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	a := &activator{
		w: w, inodes: map[string]os.FileInfo{}, notify: filepath.Join(filepath.Dir(w.dir), "notify"),
		stops: make(chan struct{}, 100), end: cancel, done: make(chan struct{}),
	}
	for _, name := range []string{"control.sock", "mcp.sock"} {
		path := filepath.Join(run, name)
		_ = os.Remove(path)
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		file, err := l.File()
		l.Close()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, 0o600); err != nil {
			t.Fatal(err)
		}
		a.files = append(a.files, file)
		if a.inodes[path], err = os.Lstat(path); err != nil {
			t.Fatal(err)
		}
	}
	hear, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: a.notify, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	go a.hear(hear)
	go a.keep(ctx, hear)
	t.Cleanup(a.close)
	return a
}

func (a *activator) close() {
	a.end()
	<-a.done
}

func (a *activator) hear(conn *net.UnixConn) {
	buf := make([]byte, 4096)
	for {
		n, err := conn.Read(buf)
		if err != nil {
			return
		}
		a.mu.Lock()
		a.said = append(a.said, string(buf[:n]))
		a.mu.Unlock()
		if strings.HasPrefix(string(buf[:n]), "STOPPING=1") {
			a.stops <- struct{}{}
		}
	}
}

// keep starts one daemon after another until ctx ends.
func (a *activator) keep(ctx context.Context, hear *net.UnixConn) {
	defer close(a.done)
	defer hear.Close()
	for a.wanted(ctx) {
		cmd := exec.CommandContext(ctx, "sh", "-c", `LISTEN_PID=$$ exec "$0" run --managed`,
			filepath.Join(bin, "serviced"))
		cmd.Env = append(append([]string{}, a.w.env...), "LISTEN_FDS=2",
			"LISTEN_FDNAMES=serviced.socket:serviced.socket", "NOTIFY_SOCKET="+a.notify, "WATCHDOG_USEC=3000000")
		cmd.Dir, cmd.ExtraFiles = "/", a.files
		cmd.Cancel = func() error {
			_ = cmd.Process.Signal(syscall.SIGTERM)
			return os.ErrProcessDone // the daemon's exit status is checked instead
		}
		out, err := cmd.CombinedOutput()
		a.mu.Lock()
		a.ended = append(a.ended, fmt.Sprintf("%v: %s", err, tail(string(out), 5)))
		a.mu.Unlock()
	}
	for _, file := range a.files {
		file.Close()
	}
}

// wanted waits until a connection is pending at a socket, and returns false if ctx ended.
func (a *activator) wanted(ctx context.Context) bool {
	fds := make([]unix.PollFd, len(a.files))
	for ctx.Err() == nil {
		for i, file := range a.files {
			fds[i] = unix.PollFd{Fd: int32(file.Fd()), Events: unix.POLLIN}
		}
		if n, err := unix.Poll(fds, 50); err == nil && n > 0 {
			return true
		}
	}
	return false
}

// heard returns a function that reports whether a daemon has sent a notification with this prefix.
func (a *activator) heard(start string) func() bool {
	return func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		for _, text := range a.said {
			for line := range strings.Lines(text) {
				if strings.HasPrefix(line, start) {
					return true
				}
			}
		}
		return false
	}
}

// untouched fails unless the sockets are still the original ones, and every daemon inherited them and exited
// successfully.
func (a *activator) untouched() {
	a.w.t.Helper()
	for path, before := range a.inodes {
		if now, err := os.Lstat(path); err != nil || !os.SameFile(before, now) || now.Mode().Perm() != 0o600 {
			a.w.t.Errorf("the socket %s changed to %v (error %v), want the same file of mode 0600", path, now, err)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, end := range a.ended {
		if !strings.HasPrefix(end, "<nil>") {
			a.w.t.Errorf("a daemon ended with %s, want no error", end)
		}
	}
}

// activations returns how many daemons started with inherited sockets, and how many with their own sockets.
func activations(w *world) (given, own int) {
	log, _ := os.ReadFile(filepath.Join(w.dir, "log", "serviced.log"))
	given = strings.Count(string(log), `"activated":true`)
	return given, strings.Count(string(log), `"daemon started"`) - given
}
