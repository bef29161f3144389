//go:build unix

package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"e2e","version":"1"}}}` + "\n"

// firstAnswer starts service-mcp, sends a line and returns the first line of its output.
func firstAnswer(w *world, line string) (string, error) {
	cmd := w.command("service-mcp")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return "", err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	defer cmd.Wait()
	defer stdin.Close()
	stop := time.AfterFunc(40*time.Second, func() { cmd.Process.Kill() })
	defer stop.Stop()
	if _, err := stdin.Write([]byte(line)); err != nil {
		return "", err
	}
	return bufio.NewReader(stdout).ReadString('\n')
}

// starts returns the number of daemons that have started in the state directory.
func starts(w *world) int {
	log, _ := os.ReadFile(filepath.Join(w.dir, "log", "serviced.log"))
	return strings.Count(string(log), `"daemon started"`)
}

// 20 clients that start at the same time without a daemon start a single daemon, and all get a successful response.
func TestColdClients_StartOneDaemon(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	answers := make(chan error, 20)
	for i := range cap(answers) {
		go func() {
			if i%2 == 0 {
				answers <- coldWhoami(w)
			} else {
				answers <- coldInitialize(w)
			}
		}()
	}
	for range cap(answers) {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
	if n := starts(w); n != 1 {
		t.Errorf("%d daemons started, want 1", n)
	}
}

func coldWhoami(w *world) error {
	if out, errs, exit := w.ctl("whoami", "--json"); exit != 1 || !strings.Contains(out, `"not_linked"`) {
		return fmt.Errorf("whoami: exit %d, want 1 and not_linked: %s%s", exit, out, errs)
	}
	return nil
}

func coldInitialize(w *world) error {
	line, err := firstAnswer(w, initialize)
	if err == nil && !strings.Contains(line, `"serverInfo"`) {
		err = fmt.Errorf("initialize: got %s, want the server's answer", line)
	}
	return err
}

// A second daemon started by hand is refused and does not affect the running one.
func TestSecondDaemon_IsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.ctl("whoami")
	pid, socket := w.daemonPID(), filepath.Join(w.dir, "run", "mcp.sock")
	before, err := os.Stat(socket)
	if err != nil {
		t.Fatal(err)
	}
	second := w.command("serviced", "run")
	out, err := second.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "another serviced is already running") ||
		!strings.Contains(string(out), w.dir) {
		t.Errorf("the second daemon was not refused with a clear error: %v: %s", err, out)
	}
	if after, err := os.Stat(socket); err != nil || !os.SameFile(before, after) {
		t.Errorf("the second daemon replaced the socket, want the same file (error %v)", err)
	}
	if _, _, exit := w.ctl("whoami"); exit != 1 || w.daemonPID() != pid {
		t.Errorf("whoami at the first daemon: exit %d, want 1; pid %d, want %d", exit, w.daemonPID(), pid)
	}
}

// An agent's connection survives the exit of its daemon for any reason.
func TestAgent_OutlivesDaemons(t *testing.T) {
	t.Parallel()
	b := startBackend(t, "")
	for _, protocol := range []string{"legacy", "modern"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "", "SERVICE_BACKEND_URL="+b.url)
			a := startAgent(w, protocol, false)
			install := whoAmI(t, a)
			code, _ := ask(t, a)

			_, inFlight := a.start("completeAuthLink", map[string]any{"deviceCode": code}, true, time.Minute)
			must(t, "the call is under way", func() bool { return len(a.progressed) > 0 })
			pid := w.daemonPID()
			syscall.Kill(pid, syscall.SIGKILL)
			wantError(t, a.wait(inFlight), "daemon_restarted", true)
			if now := whoAmI(t, a); now != install {
				t.Errorf("after kill -9 the install id is %s, want %s", now, install)
			}
			if now := w.daemonPID(); now == pid || now == 0 {
				t.Errorf("the daemon's pid is %d, want a new one instead of %d", now, pid)
			}

			pid = w.daemonPID()
			syscall.Kill(pid, syscall.SIGSTOP) // the call arrives but the daemon does not handle it
			_, reading := a.start("whoAmI", map[string]any{}, false, time.Minute)
			time.Sleep(100 * time.Millisecond) // time for the agent to write the call; the test also passes if this is too short
			syscall.Kill(pid, syscall.SIGKILL)
			if r := a.wait(reading); r.IsError || r.str(t, "installId") != install {
				t.Errorf("a read-only call in flight at kill -9: got %v, want the install id", r.Structured)
			}

			pid = w.daemonPID()
			if _, errs, exit := w.ctl("daemon", "stop"); exit != 0 || !waitGone(pid, 5*time.Second) {
				t.Fatalf("daemon stop: exit %d, want 0 and the process gone: %s", exit, errs)
			}
			if now := whoAmI(t, a); now != install {
				t.Errorf("after daemon stop the install id is %s, want %s", now, install)
			}

			pid = w.daemonPID()
			if err := os.RemoveAll(w.dir); err != nil && !os.IsNotExist(err) {
				t.Log(err) // the daemon may write to the directory during the deletion
				os.RemoveAll(w.dir)
			}
			if !waitGone(pid, 10*time.Second) {
				t.Fatal("the daemon still runs 10 s after its directory was deleted")
			}
			if now := whoAmI(t, a); now == install {
				t.Errorf("after the directory was deleted the install id is still %s", now)
			}
			if info, err := os.Stat(w.dir); err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("the new directory: got %v (error %v), want mode 0700", info, err)
			}
		})
	}
}

// whoAmI returns the install id from whoAmI's result.
func whoAmI(t *testing.T, a *agent) string {
	t.Helper()
	r := a.call("whoAmI", map[string]any{})
	if r.Structured["code"] == "daemon_restarted" { // the daemon was stopping; its error says to retry
		r = a.call("whoAmI", map[string]any{})
	}
	if r.IsError {
		t.Fatalf("whoAmI: %v", r.Structured)
	}
	return r.str(t, "installId")
}

// After kill -9 the next client starts a daemon.
func TestClient_StartsDaemonAfterKill(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	before, _, _ := w.ctl("whoami", "--json")
	pid := w.daemonPID()
	syscall.Kill(pid, syscall.SIGKILL)
	if !waitGone(pid, 5*time.Second) {
		t.Fatal("the daemon survived kill -9")
	}
	after, errs, exit := w.ctl("whoami", "--json")
	var one, other struct{ InstallID string }
	_ = json.Unmarshal([]byte(before), &one)
	_ = json.Unmarshal([]byte(after), &other)
	if exit != 1 || one.InstallID == "" || one != other {
		t.Errorf("whoami after kill -9: exit %d, want 1 and the same install id: %s%s; before: %s", exit, after, errs, before)
	}
}
