package pluginhost

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/test/reaper"
)

// built is the directory that contains the compiled program.
var built string

func TestMain(m *testing.M) {
	if os.Getenv("PLUGINHOST_TEST_DIAL") != "" {
		dialAll(strings.Split(os.Getenv("PLUGINHOST_TEST_DIAL"), ","))
		return
	}
	// The tests mostly wait for other programs.
	reaper.Parallel(6)
	os.Exit(reaper.Run(func() int {
		var err error
		if built, err = os.MkdirTemp("", "plug"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(built)
		return m.Run()
	}))
}

// program is the file that contains the shipped adapters.
const program = "serviced"

// compiled returns the program, built when a test first installs it.
var compiled = sync.OnceValues(func() ([]byte, error) {
	file := filepath.Join(built, program)
	out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", file,
		"github.com/service-dev/service/daemon/serviced").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("building the adapters: %w\n%s", err, out)
	}
	return os.ReadFile(file)
})

// install writes the program and its manifest into a temporary directory, as they are shipped.
func install(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	data, err := compiled()
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, program), data, 0o755)
	list(t, dir, program)
	return dir
}

// list writes the manifest of files in a directory.
func list(t testing.TB, dir string, files ...string) {
	t.Helper()
	var manifest []byte
	for _, file := range files {
		data, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		manifest = fmt.Appendf(manifest, "%x  %s\n", sha256.Sum256(data), file)
	}
	write(t, filepath.Join(dir, Manifest), manifest, 0o644)
}

func write(t testing.TB, path string, data []byte, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, data, mode); err != nil {
		t.Fatal(err)
	}
}

// serve starts a host for files that were installed an hour ago. When the test ends, serve stops it and waits for it.
func serve(t *testing.T, dir string) (*Host, *lines) {
	t.Helper()
	return serveAt(t, dir, func() time.Time { return time.Now().Add(time.Hour) })
}

// serveAt is like serve, but with another clock.
func serveAt(t *testing.T, dir string, now func() time.Time) (*Host, *lines) {
	t.Helper()
	sockets, err := os.Getenv("PLUGINHOST_TEST_SOCKETS"), error(nil)
	if sockets == "" {
		sockets, err = os.MkdirTemp("/tmp", "a")
	}
	if err != nil {
		t.Fatal(err)
	}
	log := &lines{}
	h, err := New(Options{Dir: dir, ConfigDir: t.TempDir(), SocketDir: sockets, Now: now,
		Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = h.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-done
		left, _ := os.ReadDir(sockets)
		if len(left) != 0 {
			t.Errorf("%d entries are left in the socket directory", len(left))
		}
		os.RemoveAll(sockets)
	})
	return h, log
}

// serveWith starts a host of the shipped program with other options. stop stops it and waits for it.
func serveWith(t *testing.T, o Options) (h *Host, stop func()) {
	t.Helper()
	sockets, err := os.MkdirTemp("/tmp", "a")
	if err != nil {
		t.Fatal(err)
	}
	o.Dir, o.SocketDir, o.Log = install(t), sockets, slog.New(slog.DiscardHandler)
	if h, err = New(o); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = h.Serve(ctx) }()
	stop = func() { cancel(); <-done }
	t.Cleanup(func() { stop(); os.RemoveAll(sockets) })
	return h, stop
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not true within a minute", what)
		}
	}
}

type lines struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func healthy(w http.ResponseWriter, _ *http.Request) {
	_, _ = io.WriteString(w, `{"ok":true,"service":"fake","version":"1"}`)
}

func code(t *testing.T, err error) *problem.Error {
	t.Helper()
	var p *problem.Error
	if !errors.As(err, &p) {
		t.Fatalf("want a problem, got %v", err)
	}
	return p
}

// descriptors counts this process's open files, or returns 0 where the system cannot report them.
func descriptors() int {
	list, _ := os.ReadDir("/proc/self/fd")
	return len(list)
}
