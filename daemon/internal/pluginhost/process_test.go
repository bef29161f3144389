//go:build unix

package pluginhost

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
)

// script installs a shell script as the adapter for remote backends, which takes precedence over the adapter in
// serviced.
func script(t *testing.T, body string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "service-plugin-"+HTTP), []byte("#!/bin/sh\n"+body), 0o755)
	list(t, dir, "service-plugin-"+HTTP)
	return dir
}

func gone(pid int) bool { return syscall.Kill(pid, 0) == syscall.ESRCH }

// If an adapter prints something other than a handshake on standard output, the error quotes it.
func TestNoiseIsDiagnosed(t *testing.T) {
	t.Parallel()
	h, _ := serve(t, script(t, "echo hello world\nexec cat\n"))
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	_, err := h.Health(ctx, backend.Target{BaseURL: "http://127.0.0.1:1", InstallID: "i"})
	// The call may return the error of a later state; the status holds the reason.
	_ = err
	eventually(t, "a reason", func() bool {
		return strings.Contains(h.Plugins()[0].LastError, "something other than its handshake")
	})
}

// An adapter of a newer protocol is refused with an error that explains what to install.
func TestNewerProtocolIsReadable(t *testing.T) {
	t.Parallel()
	h, _ := serve(t, script(t, "echo '1|99|unix|/nowhere|grpc|'\nexec cat\n"))
	_, err := h.Health(t.Context(), backend.Target{BaseURL: "http://127.0.0.1:1", InstallID: "i"})
	p := code(t, err)
	if p.Retryable || !strings.Contains(p.Message, "protocol version") ||
		!strings.Contains(p.Message, "install the service again") {
		t.Fatalf("problem: %+v", p)
	}
}

func TestStderrReachesTheLog(t *testing.T) {
	t.Parallel()
	h, log := serve(t, script(t,
		`echo '{"level":"WARN","msg":"from json","n":7}' >&2; echo '{"@message":1}' >&2; echo plain words >&2; echo noise`+"\n"))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, _ = h.Health(ctx, backend.Target{BaseURL: "http://127.0.0.1:1", InstallID: "i"})
	eventually(t, "the log", func() bool {
		s := log.String()
		return strings.Contains(s, "level=WARN msg=\"from json\"") && strings.Contains(s, "n=7") &&
			strings.Contains(s, "plain words")
	})
}

// An adapter that hangs at its start delays only its own callers, until they give up.
func TestOneThatHangsBlocksNobody(t *testing.T) {
	h, _ := serve(t, script(t, "exec sleep 1000\n"))
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := h.Health(ctx, backend.Target{BaseURL: "http://127.0.0.1:1", InstallID: "i"}); err == nil {
		t.Fatal("the call was answered although the adapter hangs")
	}
	if got := h.Plugins()[0].State; got != Starting {
		t.Fatalf("state %s", got)
	}
	begin := time.Now()
	h.Activity(t.Context())
	if took := time.Since(begin); took > 20*time.Second {
		t.Fatalf("Activity took %v, want it not to wait", took)
	}
}

func TestChildrenGoWithTheirAdapter(t *testing.T) {
	t.Parallel()
	pidFile := filepath.Join(t.TempDir(), "pid")
	h, _ := serve(t, script(t, "sleep 1000 &\necho $! >'"+pidFile+"'\necho noise\n"))
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, _ = h.Health(ctx, backend.Target{BaseURL: "http://127.0.0.1:1", InstallID: "i"})
	var pid int
	eventually(t, "the child's pid", func() bool {
		data, _ := os.ReadFile(pidFile)
		_, err := fmt.Sscan(string(data), &pid)
		return err == nil
	})
	eventually(t, "the child's exit", func() bool { return gone(pid) })
}

// The adapters of a daemon killed with kill -9 exit soon. The daemon here is a host in a separate process.
func TestDaemonKilled(t *testing.T) {
	if dir := os.Getenv("PLUGINHOST_TEST_DIR"); dir != "" {
		h, _ := serve(t, dir)
		if _, err := h.Health(t.Context(), backend.Target{BaseURL: os.Getenv("PLUGINHOST_TEST_URL"),
			InstallID: "i"}); err != nil {
			t.Fatal(err)
		}
		fmt.Println("pid", h.Plugins()[0].PID)
		select {}
	}
	srv := httptest.NewServer(http.HandlerFunc(healthy))
	defer srv.Close()
	sockets, err := os.MkdirTemp("/tmp", "a")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(sockets)
	cmd := exec.Command(os.Args[0], "-test.run=^TestDaemonKilled$")
	cmd.Env = append(os.Environ(), "PLUGINHOST_TEST_DIR="+install(t), "PLUGINHOST_TEST_URL="+srv.URL,
		"PLUGINHOST_TEST_SOCKETS="+sockets)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if _, err := fmt.Sscanf(lines.Text(), "pid %d", &pid); err == nil {
			break
		}
	}
	if pid == 0 || gone(pid) {
		t.Fatalf("the adapter with pid %d is not running", pid)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	eventually(t, "the adapter's exit", func() bool { return gone(pid) })
}

// unusedUID is a user id that owns no files on this system.
const unusedUID = 65534

// asNobody runs this test binary as another user and returns its output. It passes the paths in a variable that
// TestMain reads.
func asNobody(t *testing.T, variable string, paths []string) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "n") // a directory that the user unusedUID can read
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	self, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "self"), self, 0o755)
	cmd := exec.Command(filepath.Join(dir, "self"))
	cmd.Dir, cmd.Env = "/", []string{variable + "=" + strings.Join(paths, ",")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: unusedUID, Gid: unusedUID}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}
