//go:build unix

package e2e

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// If the daemon's process is stopped (SIGSTOP), commands report that within seconds, with the process id and a
// working fix.
func TestStoppedDaemon_IsReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.ctl("whoami")
	pid := w.daemonPID()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer syscall.Kill(pid, syscall.SIGCONT)
	if runtime.GOOS == "linux" {
		must(t, "the daemon is stopped", func() bool {
			state, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
			return strings.Contains(string(state), "T (stopped)")
		})
	}
	names := func(what, text string, took time.Duration) {
		t.Helper()
		if took > 8*time.Second || !strings.Contains(text, "daemon_not_responding") ||
			!strings.Contains(text, fmt.Sprintf("pid %d", pid)) ||
			!strings.Contains(text, "servicectl daemon restart") {
			t.Errorf("%s took %s, want daemon_not_responding with pid and fix within 8 s: %s", what, took, text)
		}
	}
	begun := time.Now()
	line, err := firstAnswer(w, initialize)
	if err != nil {
		t.Fatal(err)
	}
	names("initialize", line, time.Since(begun))
	for _, command := range []string{"whoami", "status", "doctor"} {
		begun = time.Now()
		out, errs, _ := w.ctl(command, "--json")
		if command == "doctor" { // doctor reports the daemon as one of its checks
			out = strings.Replace(out, "did not respond", "daemon_not_responding", 1)
		}
		names(command, out+errs, time.Since(begun))
	}
	begun = time.Now()
	if out, errs, exit := w.ctl("daemon", "restart", "--json"); exit != 0 || time.Since(begun) > 15*time.Second {
		t.Errorf("daemon restart: exit %d after %s, want 0 within 15 s: %s%s", exit, time.Since(begun), out, errs)
	}
	if now := w.daemonPID(); now == pid || now == 0 {
		t.Errorf("the daemon's pid is %d, want a new one instead of %d", now, pid)
	}
	if line, err := firstAnswer(w, initialize); err != nil || !strings.Contains(line, "serverInfo") {
		t.Errorf("initialize after the restart: got %s (error %v), want the server's answer", line, err)
	}
}
