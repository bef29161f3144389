//go:build unix

package pluginhost

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/internal/problem"
)

// serveProbing starts a host that probes its adapters at a shorter interval than usual. stop stops the host and waits
// for it.
func serveProbing(t *testing.T, every time.Duration) (h *Host, stop func()) {
	t.Helper()
	return serveWith(t, Options{ConfigDir: t.TempDir(), ProbeEvery: every, ProbeWait: 1500 * time.Millisecond})
}

// freeze stops a process and, on Linux, waits until each of its threads is stopped.
func freeze(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the process is stopped", func() bool {
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		for _, path := range threads {
			if data, _ := os.ReadFile(path); !strings.Contains(string(data), ") T ") {
				return false
			}
		}
		return true
	})
}

// An adapter that was stopped (SIGSTOP) is replaced. The call in progress fails within seconds, with an error that
// blames the adapter and not the network, and the next call is answered.
func TestAStoppedAdapterIsReplaced(t *testing.T) {
	t.Parallel()
	h, _ := serveProbing(t, 200*time.Millisecond)
	srv := httptest.NewServer(http.HandlerFunc(healthy))
	defer srv.Close()
	target := backend.Target{BaseURL: srv.URL, InstallID: "i"}
	if _, err := h.Health(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	pid := h.Plugins()[0].PID
	freeze(t, pid)
	began := time.Now()
	_, err := h.Health(t.Context(), target)
	took := time.Since(began)
	p := code(t, err)
	if p.Code != problem.CodeAdapterUnavailable || !p.Retryable || !strings.Contains(p.Message, HTTP) ||
		!strings.Contains(p.Message, "did not answer") || strings.Contains(p.Message+p.FixHint, "network") {
		t.Errorf("%+v", p)
	}
	if took > 10*time.Second {
		t.Errorf("the call failed only after %v, want at most 10 s", took)
	}
	eventually(t, "the adapter answers again", func() bool {
		_, err := h.Health(t.Context(), target)
		return err == nil
	})
	if got := h.Plugins()[0]; got.PID == pid || got.Restarts != 1 || !strings.Contains(got.LastError, "did not answer") {
		t.Errorf("%+v", got)
	}
	if err := syscall.Kill(pid, 0); err == nil {
		t.Error("the stopped process still exists")
	}
}

// A stopped adapter is replaced even if it is not called, because the embedded backend's pages depend on it.
func TestAStoppedAdapterIsReplacedWithoutACall(t *testing.T) {
	t.Parallel()
	h, _ := serveProbing(t, 200*time.Millisecond)
	srv := httptest.NewServer(http.HandlerFunc(healthy))
	defer srv.Close()
	if _, err := h.Health(t.Context(), backend.Target{BaseURL: srv.URL, InstallID: "i"}); err != nil {
		t.Fatal(err)
	}
	pid := h.Plugins()[0].PID
	freeze(t, pid)
	eventually(t, "the adapter is replaced", func() bool {
		got := h.Plugins()[0]
		return got.State == Running && got.PID != pid
	})
}

// A slow backend is not the adapter's fault: the call waits and the process keeps running.
func TestASlowBackendKeepsItsAdapter(t *testing.T) {
	t.Parallel()
	h, _ := serveProbing(t, 200*time.Millisecond)
	release := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
		_, _ = io.WriteString(w, `{"ok":true,"service":"fake","version":"1"}`)
	}))
	defer srv.Close()
	ended := make(chan error, 1)
	go func() {
		_, err := h.Health(t.Context(), backend.Target{BaseURL: srv.URL, InstallID: "i"})
		ended <- err
	}()
	// This is longer than it takes to detect a stuck adapter.
	select {
	case err := <-ended:
		t.Fatalf("the call ended early: %v", err)
	case <-time.After(5 * time.Second):
	}
	close(release)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if got := h.Plugins()[0]; got.Restarts != 0 || got.State != Running {
		t.Errorf("%+v", got)
	}
}

// A host that stops does not wait for an adapter that does not respond.
func TestAStoppedAdapterDoesNotKeepTheHostFromStopping(t *testing.T) {
	t.Parallel()
	// The interval is an hour, so that no probe interferes.
	h, stop := serveProbing(t, time.Hour)
	srv := httptest.NewServer(http.HandlerFunc(healthy))
	defer srv.Close()
	if _, err := h.Health(t.Context(), backend.Target{BaseURL: srv.URL, InstallID: "i"}); err != nil {
		t.Fatal(err)
	}
	pid := h.Plugins()[0].PID
	freeze(t, pid)
	ended := make(chan struct{})
	go func() { defer close(ended); stop() }()
	select {
	case <-ended:
	case <-time.After(15 * time.Second):
		t.Error("the host did not stop within 15 s")
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// A caller whose deadline is shorter than the probe interval also gets an error that blames the adapter, not the
// network.
func TestAnImpatientCallerIsToldOfTheAdapter(t *testing.T) {
	t.Parallel()
	h, _ := serveProbing(t, 200*time.Millisecond)
	srv := httptest.NewServer(http.HandlerFunc(healthy))
	defer srv.Close()
	target := backend.Target{BaseURL: srv.URL, InstallID: "i"}
	if _, err := h.Health(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	freeze(t, h.Plugins()[0].PID)
	inst := h.adapters[HTTP].running()
	eventually(t, "a probe is not answered", func() bool { return inst.silent.Load() })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if p := code(t, func() error {
		_, err := h.Health(ctx,
			target)
		return err
	}()); p.Code != problem.CodeAdapterUnavailable || strings.Contains(p.FixHint, "network") {
		t.Errorf("%+v", p)
	}
}

// If the embedded backend is stopped, a failed call about its sessions blames its adapter.
func TestAStoppedEmbeddedBackendFailsItsSessions(t *testing.T) {
	t.Parallel()
	h, _ := serveProbing(t, 200*time.Millisecond)
	list := func() *problem.Error {
		_, err := h.ListSessions(t.Context(), backend.Target{BaseURL: backend.EmbeddedURL, InstallID: "inst_abcd"})
		return code(t, err)
	}
	if p := list(); p.Code != problem.CodeAuthRequired {
		t.Fatalf("%+v", p)
	}
	pid := statusOf(h, Local).PID
	freeze(t, pid)
	if p := list(); p.Code != problem.CodeAdapterUnavailable || !p.Retryable ||
		!strings.Contains(p.Message, Local+" did not answer") {
		t.Errorf("%+v", p)
	}
	eventually(t, "the embedded backend answers again", func() bool {
		return list().Code == problem.CodeAuthRequired
	})
}
