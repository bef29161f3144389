package pluginhost

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/packaging/reaper"
)

// built is the directory with the really built adapters.
var built string

func TestMain(m *testing.M) {
	if os.Getenv("PLUGINHOST_TEST_KNOCK") != "" {
		knock(strings.Split(os.Getenv("PLUGINHOST_TEST_KNOCK"), ","))
		return
	}
	os.Exit(reaper.Run(func() int {
		var err error
		if built, err = os.MkdirTemp("", "plug"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(built)
		out, err := exec.Command("go", "build", "-o", built+"/service-plugin-backendhttp", "github.com/service-dev/service/plugins/backendhttp").CombinedOutput()
		if err != nil {
			fmt.Fprintf(os.Stderr, "building the adapter: %v\n%s", err, out)
			return 1
		}
		return m.Run()
	}))
}

// install copies the adapters into a directory of the test's own, with a manifest.
func install(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	data, err := os.ReadFile(filepath.Join(built, "service-plugin-backendhttp"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "service-plugin-backendhttp"), data, 0o755)
	write(t, filepath.Join(dir, Manifest), fmt.Appendf(nil, "%x  service-plugin-backendhttp\n", sha256.Sum256(data)), 0o644)
	return dir
}

func write(t *testing.T, path string, data []byte, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, data, mode); err != nil {
		t.Fatal(err)
	}
}

// serve starts a host that is stopped, and awaited, when the test ends.
func serve(t *testing.T, dir string) (*Host, *lines) {
	t.Helper()
	sockets, err := os.Getenv("PLUGINHOST_TEST_SOCKETS"), error(nil)
	if sockets == "" {
		sockets, err = os.MkdirTemp("/tmp", "a")
	}
	if err != nil {
		t.Fatal(err)
	}
	log := &lines{}
	h, err := New(Options{Dir: dir, ConfigDir: t.TempDir(), SocketDir: sockets, Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
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
			t.Errorf("%d entries left in the socket directory", len(left))
		}
		os.RemoveAll(sockets)
	})
	return h, log
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

func code(t *testing.T, err error) *backend.Problem {
	t.Helper()
	var p *backend.Problem
	if !errors.As(err, &p) {
		t.Fatalf("want a problem, got %v", err)
	}
	return p
}

func TestCallOverRealAdapter(t *testing.T) {
	h, _ := serve(t, install(t))
	srv := httptest.NewServer(http.HandlerFunc(healthy))
	defer srv.Close()
	if got := h.Plugins()[0].State; got != Stopped {
		t.Fatalf("an adapter runs before it is needed: %s", got)
	}
	var all sync.WaitGroup
	for range 20 { // one start, whoever comes first
		all.Go(func() {
			if got, err := h.Health(t.Context(), backend.Target{BaseURL: srv.URL, InstallID: "inst_1"}); err != nil || got.Service != "fake" {
				t.Errorf("health: %+v, %v", got, err)
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
	h, _ := serve(t, install(t))
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer srv.Close()
	_, err := h.PollDeviceToken(t.Context(), backend.Target{BaseURL: srv.URL, InstallID: "inst_1"}, "sdc_x")
	if p := code(t, err); p.Code != backend.CodeRateLimited || p.RetryAfter != 7*time.Second || !p.Retryable || p.HTTPStatus != 429 {
		t.Fatalf("problem: %+v", p)
	}
}

// S30: an adapter of which one byte differs is refused by its checksum, and so is everything that is not the file that
// was installed: a link out of the directory, a file that others may write, one that the manifest does not name.
func TestFilesThatMustNotRun(t *testing.T) {
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
			write(t, filepath.Join(dir, Manifest), []byte("xyz  service-plugin-backendhttp\n"), 0o644)
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
			spoil(t, dir, filepath.Join(dir, "service-plugin-backendhttp"))
			h, _ := serve(t, dir)
			_, err := h.Health(t.Context(), backend.Target{BaseURL: "http://127.0.0.1:1", InstallID: "i"})
			p := code(t, err)
			if p.Code != backend.CodeAdapterUnavailable || p.Retryable || p.FixHint == "" {
				t.Fatalf("problem: %+v", p)
			}
			got := h.Plugins()[0]
			if got.State != Refused || got.LastError == "" || got.Verified || got.PID != 0 || !got.Since.IsZero() {
				t.Fatalf("status: %+v", got)
			}
			if name == "one byte flipped" && !strings.Contains(p.Message, "checksum") {
				t.Errorf("the reason is %q", p.Message)
			}
			if name == "link out of the directory" && !strings.Contains(p.Message, "is a link out of") {
				t.Errorf("the reason is %q", p.Message)
			}
		})
	}
}

func TestRefusedFileIsLookedAtAgain(t *testing.T) {
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
		t.Fatal("it ran without a manifest")
	}
	if err := os.Rename(aside, filepath.Join(dir, Manifest)); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Health(t.Context(), target); err != nil {
		t.Fatal(err)
	}
}

// S29: kill -9 in mid-call is a typed error in under two seconds, the adapter is started again, and its status tells
// when and why it crashed.
func TestKilledInMidCall(t *testing.T) {
	h, _ := serve(t, install(t))
	arrived, release := make(chan struct{}, 8), make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/account" {
			arrived <- struct{}{}
			<-release
			return
		}
		healthy(w, r)
	}))
	defer srv.Close()
	defer close(release)
	target := backend.Target{BaseURL: srv.URL, Bearer: "svc_x"}
	result := make(chan error, 1)
	go func() { _, err := h.Account(context.Background(), target); result <- err }()
	<-arrived
	begin := time.Now()
	proc, _ := os.FindProcess(h.Plugins()[0].PID)
	if err := proc.Kill(); err != nil {
		t.Fatal(err)
	}
	p := code(t, <-result)
	if took := time.Since(begin); took > 2*time.Second || p.Code != backend.CodeAdapterUnavailable || !p.Retryable {
		t.Fatalf("after %v: %+v", took, p)
	}
	// It is started again by itself, and calls wait for it.
	deadline := time.Now().Add(5 * time.Second)
	for {
		_, err := h.Health(t.Context(), target)
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	got := h.Plugins()[0]
	if got.Restarts != 1 || got.State != Running || got.Crashed.Before(begin) || got.Since.Before(got.Crashed) || !got.Resume.IsZero() ||
		!strings.Contains(got.LastError, "killed") {
		t.Fatalf("status: %+v", got)
	}
}

// S29: five crashes within a minute open the breaker: calls are refused at once with the time to come back, nothing is
// started meanwhile, and the other adapters are as they were.
func TestBreakerOpens(t *testing.T) {
	h, _ := serve(t, install(t))
	srv := httptest.NewServer(http.HandlerFunc(healthy))
	defer srv.Close()
	target := backend.Target{BaseURL: srv.URL, InstallID: "i"}
	deadline := time.Now().Add(20 * time.Second)
	for crashes := 0; crashes < breakerCrashes; {
		if time.Now().After(deadline) {
			t.Fatalf("%d crashes only: %+v", crashes, h.Plugins()[0])
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		_, err := h.Health(ctx, target)
		cancel()
		if err != nil {
			continue
		}
		pid := h.Plugins()[0].PID
		proc, _ := os.FindProcess(pid)
		_ = proc.Kill()
		crashes++
		for h.Plugins()[0].PID == pid && time.Now().Before(deadline) {
			runtime.Gosched()
		}
	}
	_, err := h.Health(t.Context(), target)
	if p := code(t, err); p.Code != backend.CodeAdapterUnavailable || p.RetryAfter < 30*time.Second {
		t.Fatalf("problem: %+v", p)
	}
	broken := h.Plugins()[0]
	if broken.State != Backoff || broken.PID != 0 || broken.Resume.Sub(broken.Crashed) != breakerPause || !strings.Contains(broken.LastError, "5 crashes within a minute") {
		t.Errorf("status: %+v", broken)
	}
	for _, other := range h.Plugins()[1:] {
		if other.State != Stopped || other.Restarts != 0 || other.LastError != "" {
			t.Errorf("another adapter is touched: %+v", other)
		}
	}
}

// A clock that is set forward neither shortens a pause nor makes calls wait for its end.
func TestMovedClockKeepsNobodyWaiting(t *testing.T) {
	a := newAdapter(&Host{now: func() time.Time { return time.Now().Add(24 * time.Hour) }, life: t.Context()}, "x", "/x")
	a.status.State, a.resume = Backoff, time.Now().Add(breakerPause)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	var p *backend.Problem
	if _, err := a.get(ctx); !errors.As(err, &p) || p.Code != backend.CodeAdapterUnavailable || p.RetryAfter < breakerPause/2 {
		t.Errorf("got %v", err)
	}
}

// What the adapter says does not pass by itself is told so, with what heals it; a crash later is only a crash.
func TestLastingCauseIsNotToBeTriedAgain(t *testing.T) {
	a := newAdapter(&Host{now: time.Now, life: t.Context()}, "x", "/x")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	a.pause(ended, fmt.Errorf("starting: %w", &backend.Problem{Code: backend.CodeAdapterUnavailable, Message: "the key is lost", FixHint: "bring it back"}))
	if p := a.unavailable(); p.Retryable || p.RetryAfter != 0 || p.FixHint != "bring it back" || !strings.Contains(p.Message, "the key is lost") {
		t.Errorf("%+v", p)
	}
	for _, passing := range []error{errors.New("killed"), &backend.Problem{Message: "the disk is full", Retryable: true}} {
		a.pause(ended, passing)
		if p := a.unavailable(); !p.Retryable || p.FixHint == "bring it back" || !strings.Contains(p.Message, passing.Error()) {
			t.Errorf("%v: %+v", passing, p)
		}
	}
}

// S30: an adapter's environment holds no token and no SERVICE_* secret, and a TMPDIR of 150 characters does no harm.
func TestEnvironmentIsOurs(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc")
	}
	h, _ := serve(t, install(t))
	for name, value := range map[string]string{
		"SERVICE_BACKEND_HMAC_KEY": "hush", "SERVICE_AUTH_TOKEN": "hush", "SERVICE_BACKEND_URL": "http://hush", "SERVICE_READY_FD": "hush", "SERVICE_TOKEN": "hush", "AWS_SECRET_ACCESS_KEY": "hush", "PLUGIN_CLIENT_CERT": "hush",
		"TMPDIR": "/tmp/" + strings.Repeat("x", 150), "LANG": "C.UTF-8",
	} {
		t.Setenv(name, value)
	}
	srv := httptest.NewServer(http.HandlerFunc(healthy))
	defer srv.Close()
	// The token of a call goes with the call alone.
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
		if strings.Contains(value, "hush") || (strings.HasPrefix(name, "SERVICE_") && name != "SERVICE_PLUGIN_COOKIE") || strings.Contains(value, "xxxx") {
			t.Errorf("the adapter sees %s", name)
		}
	}
	if !strings.Contains(string(env), "LANG=C.UTF-8") {
		t.Error("the adapter misses LANG")
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
			t.Fatalf("%d entries left", len(left))
		}
	}
	cycle()
	before, fds := runtime.NumGoroutine(), descriptors()
	for range 20 {
		cycle()
	}
	deadline := time.Now().Add(5 * time.Second)
	for runtime.NumGoroutine() > before+5 || descriptors() > fds+5 {
		if time.Now().After(deadline) {
			t.Fatalf("goroutines %d -> %d, descriptors %d -> %d", before, runtime.NumGoroutine(), fds, descriptors())
		}
		runtime.Gosched()
	}
}

// descriptors counts this process's open files; 0 where that cannot be told.
func descriptors() int {
	list, _ := os.ReadDir("/proc/self/fd")
	return len(list)
}

func TestCallerWhoGivesUp(t *testing.T) {
	h, _ := serve(t, install(t))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.Health(ctx, backend.Target{BaseURL: "http://127.0.0.1:1", InstallID: "i"}); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
}
