package pluginhost

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/internal/problem"
)

func TestCallOverRealAdapter(t *testing.T) {
	t.Parallel()
	h, _ := serve(t, install(t))
	srv := httptest.NewServer(http.HandlerFunc(healthy))
	defer srv.Close()
	if got := h.Plugins()[0].State; got != Stopped {
		t.Fatalf("the adapter is %s before it is needed, want stopped", got)
	}
	var all sync.WaitGroup
	// Concurrent first calls start the adapter only once.
	for range 20 {
		all.Go(func() {
			if got, err := h.Health(t.Context(), backend.Target{BaseURL: srv.URL, InstallID: "inst_1"}); err != nil ||
				got.Service != "fake" {
				t.Errorf("health: %+v, %v; want no error", got, err)
			}
		})
	}
	all.Wait()
	p := h.Plugins()[0]
	if p.State != Running || !p.Verified || p.PID == 0 || p.Restarts != 0 {
		t.Fatalf("status: %+v", p)
	}
}

func TestRefusalsAreTyped(t *testing.T) {
	t.Parallel()
	h, _ := serve(t, install(t))
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer srv.Close()
	_, err := h.PollDeviceToken(t.Context(), backend.Target{BaseURL: srv.URL, InstallID: "inst_1"}, "sdc_x")
	if p := code(t, err); p.Code != problem.CodeRateLimited || p.RetryAfter != 7*time.Second || !p.Retryable ||
		p.HTTPStatus != 429 {
		t.Fatalf("problem: %+v", p)
	}
}

// An adapter that differs in one byte fails its checksum. Other files that were not installed are refused too: a link
// that leads out of the directory, a file that others can write, and a file that the manifest does not list.
func TestFilesThatMustNotRun(t *testing.T) {
	t.Parallel()
	cases := map[string]func(t *testing.T, dir, file string){
		"one byte flipped": func(t *testing.T, _, file string) {
			data, _ := os.ReadFile(file)
			data[len(data)/2] ^= 1
			write(t, file, data, 0o755)
		},
		"no manifest": func(t *testing.T, dir, _ string) { os.Remove(filepath.Join(dir, Manifest)) },
		"not in manifest": func(t *testing.T, dir, _ string) {
			write(t, filepath.Join(dir, Manifest), []byte("00  other\n"), 0o644)
		},
		"manifest of junk": func(t *testing.T, dir, _ string) {
			write(t, filepath.Join(dir, Manifest), []byte("xyz  "+program+"\n"), 0o644)
		},
		"link out of the directory": func(t *testing.T, _, file string) {
			other := filepath.Join(t.TempDir(), filepath.Base(file))
			if err := os.Rename(file, other); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(other, file); err != nil {
				t.Fatal(err)
			}
		},
		"a directory":     func(t *testing.T, _, file string) { os.Remove(file); os.Mkdir(file, 0o755) },
		"missing":         func(t *testing.T, _, file string) { os.Remove(file) },
		"writable by all": func(t *testing.T, _, file string) { os.Chmod(file, 0o757) },
	}
	for name, spoil := range cases {
		t.Run(name, func(t *testing.T) {
			dir := install(t)
			spoil(t, dir, filepath.Join(dir, program))
			h, _ := serve(t, dir)
			_, err := h.Health(t.Context(), backend.Target{BaseURL: "http://127.0.0.1:1", InstallID: "i"})
			p := code(t, err)
			if p.Code != problem.CodeAdapterUnavailable || p.Retryable || p.FixHint == "" {
				t.Fatalf("problem: %+v", p)
			}
			got := h.Plugins()[0]
			if got.State != Refused || got.LastError == "" || got.Verified || got.PID != 0 || !got.Since.IsZero() {
				t.Fatalf("status: %+v", got)
			}
			if name == "one byte flipped" && !strings.Contains(p.Message, "checksum") {
				t.Errorf("the reason is %q, want a wrong checksum", p.Message)
			}
			if name == "link out of the directory" && !strings.Contains(p.Message, "is a link out of") {
				t.Errorf("the reason is %q, want a link out of the directory", p.Message)
			}
		})
	}
}

func TestRefusedFileIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	dir := install(t)
	h, _ := serve(t, dir)
	srv := httptest.NewServer(http.HandlerFunc(healthy))
	defer srv.Close()
	aside := filepath.Join(t.TempDir(), "m")
	if err := os.Rename(filepath.Join(dir, Manifest), aside); err != nil {
		t.Fatal(err)
	}
	target := backend.Target{BaseURL: srv.URL, InstallID: "i"}
	if _, err := h.Health(t.Context(), target); err == nil {
		t.Fatal("the adapter ran without a manifest")
	}
	if err := os.Rename(aside, filepath.Join(dir, Manifest)); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Health(t.Context(), target); err != nil {
		t.Fatal(err)
	}
}

// An adapter's environment contains no token and no SERVICE_* secret. A TMPDIR of 150 characters does not prevent its
// start.
func TestEnvironmentIsOurs(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc")
	}
	h, _ := serve(t, install(t))
	for name, value := range map[string]string{
		"SERVICE_BACKEND_HMAC_KEY": "hush", "SERVICE_AUTH_TOKEN": "hush", "SERVICE_BACKEND_URL": "http://hush",
		"SERVICE_READY_FD": "hush", "SERVICE_TOKEN": "hush", "AWS_SECRET_ACCESS_KEY": "hush", "PLUGIN_CLIENT_CERT": "hush",
		"TMPDIR": "/tmp/" + strings.Repeat("x", 150), "LANG": "C.UTF-8",
	} {
		t.Setenv(name, value)
	}
	srv := httptest.NewServer(http.HandlerFunc(healthy))
	defer srv.Close()
	// The token is passed only with the call.
	_, _ = h.Account(t.Context(), backend.Target{BaseURL: srv.URL, Bearer: "svc_hush"})
	if _, err := h.Health(t.Context(), backend.Target{BaseURL: srv.URL, InstallID: "i"}); err != nil {
		t.Fatal(err)
	}
	env, err := os.ReadFile("/proc/" + strconv.Itoa(h.Plugins()[0].PID) + "/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, pair := range strings.Split(string(env), "\x00") {
		name, value, _ := strings.Cut(pair, "=")
		if strings.Contains(value, "hush") || (strings.HasPrefix(name, "SERVICE_") && name != "SERVICE_PLUGIN_COOKIE") ||
			strings.Contains(value, "xxxx") {
			t.Errorf("the adapter's environment contains %s", name)
		}
	}
	if !strings.Contains(string(env), "LANG=C.UTF-8") {
		t.Error("the adapter's environment does not contain LANG")
	}
}

func TestNothingIsLeftBehind(t *testing.T) {
	dir := install(t)
	srv := httptest.NewServer(http.HandlerFunc(healthy))
	defer srv.Close()
	cycle := func() {
		sockets, err := os.MkdirTemp("/tmp", "a")
		if err != nil {
			t.Fatal(err)
		}
		h, err := New(Options{Dir: dir, ConfigDir: dir, SocketDir: sockets, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(h.opts.SocketDir)
		ctx, cancel := context.WithCancel(t.Context())
		if _, err := h.Health(ctx, backend.Target{BaseURL: srv.URL, InstallID: "i"}); err != nil {
			t.Fatal(err)
		}
		cancel()
		if err := h.Serve(ctx); err != nil {
			t.Fatal(err)
		}
		if left, _ := os.ReadDir(h.opts.SocketDir); len(left) != 0 {
			t.Fatalf("%d entries are left in the socket directory", len(left))
		}
	}
	cycle()
	before, fds := runtime.NumGoroutine(), descriptors()
	for range 20 {
		cycle()
	}
	eventually(t, "goroutines and descriptors are about as many as before", func() bool {
		return runtime.NumGoroutine() <= before+5 && descriptors() <= fds+5
	})
}

func TestCallerWhoGivesUp(t *testing.T) {
	t.Parallel()
	h, _ := serve(t, install(t))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.Health(ctx, backend.Target{BaseURL: "http://127.0.0.1:1", InstallID: "i"}); !errors.Is(err,
		context.Canceled) {
		t.Fatalf("got %v", err)
	}
}
