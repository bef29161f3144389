//go:build unix

package pluginhost

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
)

// After 200 cycles of kill -9 and restart (20 in CI), the numbers of goroutines, descriptors and socket directories
// are the same as before. The test advances the clock so that the breaker stays closed.
func TestManyCrashesLeaveNothing(t *testing.T) {
	cycles := 20
	if os.Getenv("SERVICE_TEST_FULL") != "" {
		cycles = 200
	}
	sockets, err := os.MkdirTemp("/tmp", "a")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(sockets)
	var ahead atomic.Int64
	h, err := New(Options{
		Dir: install(t), ConfigDir: t.TempDir(), SocketDir: sockets, Log: slog.New(slog.DiscardHandler),
		Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = h.Serve(ctx) }()
	srv := httptest.NewServer(http.HandlerFunc(healthy))
	defer srv.Close()
	target := backend.Target{BaseURL: srv.URL, InstallID: "i"}

	alive := func() {
		eventually(t, "the adapter answers again", func() bool {
			_, err := h.Health(t.Context(), target)
			return err == nil
		})
	}
	crash := func() {
		pid := h.Plugins()[0].PID
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the crash is noticed", func() bool { return h.Plugins()[0].PID != pid })
		ahead.Add(int64(breakerWindow))
		alive()
	}
	alive()
	crash()
	before, fds := runtime.NumGoroutine(), descriptors()
	for range cycles {
		crash()
	}
	if got := h.Plugins()[0]; got.Restarts != cycles+1 {
		t.Errorf("%d restarts, want %d", got.Restarts, cycles+1)
	}
	eventually(t, "goroutines and descriptors are as many as before", func() bool {
		return runtime.NumGoroutine() <= before+2 && descriptors() <= fds+2
	})
	if dirs, _ := os.ReadDir(sockets); len(dirs) != 1 {
		t.Errorf("%d socket directories for one adapter, want 1", len(dirs))
	}
	cancel()
	<-done
	if dirs, _ := os.ReadDir(sockets); len(dirs) != 0 {
		t.Errorf("%d socket directories are left, want none", len(dirs))
	}
}

// Another user cannot call an adapter. Its socket is in a directory that only its owner can enter, even if the modes of
// the parent directories and of the socket are relaxed.
func TestAnotherUserCannotCallAnAdapter(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: becoming another user needs root")
	}
	h, _ := serve(t, install(t))
	srv := httptest.NewServer(http.HandlerFunc(healthy))
	defer srv.Close()
	target := backend.Target{BaseURL: srv.URL, InstallID: "i"}
	if _, err := h.Health(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(h.opts.SocketDir, "*", "*"))
	if err != nil || len(found) == 0 {
		t.Fatalf("found no socket: %v", err)
	}
	for _, path := range found {
		if info, err := os.Stat(filepath.Dir(path)); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", filepath.Dir(path), info.Mode(), err)
		}
		if err := os.Chmod(path, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(h.opts.SocketDir, 0o755); err != nil {
		t.Fatal(err)
	}
	if said := asNobody(t, "PLUGINHOST_TEST_DIAL", found); said != strings.Repeat("permission denied\n", len(found)) {
		t.Errorf("another user received %q, want permission denied", said)
	}
	if _, err := h.Health(t.Context(), target); err != nil {
		t.Errorf("the owner can no longer call the adapter: %v", err)
	}
}
