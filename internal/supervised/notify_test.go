//go:build unix

package supervised

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// listen receives notifications like a service manager.
func listen(t *testing.T) (path string, next func() string) {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "n") // socket paths must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path = filepath.Join(dir, "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return path, func() string {
		buf := make([]byte, 4096)
		_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
		n, err := conn.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		return string(buf[:n])
	}
}

func TestNotifier_ReportsState(t *testing.T) {
	path, next := listen(t)
	t.Setenv(notifySocket, path)
	t.Setenv(watchdogUSec, "30000000")
	t.Setenv(watchdogPID, strconv.Itoa(os.Getpid()))
	n := NewNotifier()
	for _, name := range []string{notifySocket, watchdogUSec, watchdogPID} {
		if _, left := os.LookupEnv(name); left {
			t.Errorf("%s is still set for child processes", name)
		}
	}
	n.Waiting("waiting")
	n.Ready()
	start := time.Now()
	n.Alive(start)
	n.Alive(start.Add(9 * time.Second)) // less than a third of the limit later
	n.Alive(start.Add(10 * time.Second))
	n.Alive(start.Add(-time.Hour)) // the clock was set back
	n.Stopping("it was idle")
	for _, want := range []string{
		"STATUS=waiting", "READY=1\nSTATUS=serving", "WATCHDOG=1", "WATCHDOG=1", "WATCHDOG=1",
		"STOPPING=1\nSTATUS=stopping: it was idle",
	} {
		if got := next(); got != want {
			t.Errorf("got notification %q, want %q", got, want)
		}
	}
}

func TestNotifier_WithoutManager(t *testing.T) {
	var none *Notifier
	gone := &Notifier{socket: filepath.Join(t.TempDir(), "gone"), interval: time.Nanosecond}
	for _, n := range []*Notifier{none, {}, gone} {
		n.Ready()
		n.Waiting("x")
		n.Alive(time.Now())
		n.Stopping("x")
	}
}

func TestNewNotifier_Watchdog(t *testing.T) {
	for name, c := range map[string]struct {
		usec, pid string
		want      time.Duration
	}{
		"ours":     {"3000000", "", time.Second},
		"another":  {"3000000", "1", 0},
		"none":     {"", "", 0},
		"nonsense": {"x", "", 0},
		"negative": {"-1", "", 0},
		"huge":     {"999999999999999999", "", 0},
	} {
		t.Setenv(watchdogUSec, c.usec)
		t.Setenv(watchdogPID, c.pid)
		if got := NewNotifier().interval; got != c.want {
			t.Errorf("%s: got interval %v, want %v", name, got, c.want)
		}
	}
}
