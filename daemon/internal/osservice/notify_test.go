//go:build unix

package osservice

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// hears listens as a service manager does and gives what arrives.
func hears(t *testing.T) (path string, next func() string) {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "n") // short, for it is a socket's
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
		_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
		n, err := conn.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		return string(buf[:n])
	}
}

func TestManagerHears(t *testing.T) {
	path, next := hears(t)
	t.Setenv(notifySocket, path)
	t.Setenv(watchdogUSec, "30000000")
	t.Setenv(watchdogPID, strconv.Itoa(os.Getpid()))
	n := NewNotifier()
	for _, name := range []string{notifySocket, watchdogUSec, watchdogPID} {
		if _, left := os.LookupEnv(name); left {
			t.Errorf("%s is left for programs that are started later", name)
		}
	}
	n.Waiting("waiting")
	n.Ready()
	start := time.Now()
	n.Alive(start)
	n.Alive(start.Add(9 * time.Second)) // too early to be said
	n.Alive(start.Add(10 * time.Second))
	n.Alive(start.Add(-time.Hour)) // a clock that went back
	n.Stopping("it was idle")
	for _, want := range []string{
		"STATUS=waiting", "READY=1\nSTATUS=serving", "WATCHDOG=1", "WATCHDOG=1", "WATCHDOG=1", "STOPPING=1\nSTATUS=stopping: it was idle",
	} {
		if got := next(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestNobodyHears(t *testing.T) {
	var none *Notifier
	gone := &Notifier{socket: filepath.Join(t.TempDir(), "gone"), interval: time.Nanosecond}
	for _, n := range []*Notifier{none, {}, gone} {
		n.Ready()
		n.Waiting("x")
		n.Alive(time.Now())
		n.Stopping("x")
	}
}

func TestWatchdogOfOthers(t *testing.T) {
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
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestPassedDescriptors(t *testing.T) {
	for _, c := range []struct {
		pid, n string
		count  int
		ok     bool
	}{
		{"7", "2", 2, true}, {"8", "2", 0, false}, {"", "2", 0, false}, {"7", "", 0, false}, {"7", "0", 0, false},
		{"7", "-1", 0, false}, {"7", "65", 0, false}, {"x", "x", 0, false},
	} {
		if count, ok := passed(c.pid, c.n, 7); ok != c.ok || ok && count != c.count {
			t.Errorf("%q %q: %d %v", c.pid, c.n, count, ok)
		}
	}
}

// TestOtherDescriptorsAreRefused: what is no listening Unix socket belongs to another unit.
func TestOtherDescriptorsAreRefused(t *testing.T) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	socket, err := tcp.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	pipe, other, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	defer pipe.Close()
	for name, file := range map[string]*os.File{"a TCP socket": socket, "a pipe": pipe} {
		fd, err := syscall.Dup(int(file.Fd())) // listener closes it
		if err != nil {
			t.Fatal(err)
		}
		if l, err := listener(fd); err == nil {
			t.Errorf("%s was taken for %v", name, l.Addr())
		}
	}
}
