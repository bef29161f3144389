//go:build unix

package e2e

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// With few file descriptors the daemon serves as many agents as it can and refuses the others immediately. With a
// limit of 18, only the descriptor reserved for refusals is left.
func TestDaemon_FewDescriptors(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{64, 18} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			w := newWorld(t, "")
			daemon := exec.Command("sh", "-c", fmt.Sprintf(`ulimit -n %d && exec "$0" run`, limit),
				filepath.Join(w.bin, "serviced"))
			daemon.Env = w.env
			if err := daemon.Start(); err != nil {
				t.Fatal(err)
			}
			defer daemon.Wait()
			defer daemon.Process.Kill()
			must(t, "the daemon is up", func() bool { return w.daemonPID() == daemon.Process.Pid })
			const agents = 30
			answers := make([]string, agents)
			var asking, leaving sync.WaitGroup
			left := make(chan struct{})
			begun := time.Now()
			for i := range agents {
				asking.Add(1)
				leaving.Go(func() {
					line, leave := attached(t, w)
					answers[i] = line
					asking.Done()
					<-left // an admitted agent stays connected
					leave()
				})
			}
			asking.Wait()
			took := time.Since(begun)
			close(left)
			leaving.Wait()
			served, refused := 0, 0
			for _, line := range answers {
				switch {
				case strings.Contains(line, "serverInfo"):
					served++
				case strings.Contains(line, `"too_many_clients"`):
					refused++
				default:
					t.Errorf("an agent received %q, want a served or refused initialize", line)
				}
			}
			if served == 0 || refused == 0 || took > 4*time.Second {
				t.Errorf("%d agents served, %d refused, in %s; want some of each within 4 s", served, refused, took)
			}
		})
	}
}

// attached returns the response to an agent's initialize. The agent stays connected until leave is called.
func attached(t *testing.T, w *world) (line string, leave func()) {
	cmd := w.command("service-mcp")
	stdin, errIn := cmd.StdinPipe()
	stdout, errOut := cmd.StdoutPipe()
	if errIn != nil || errOut != nil || cmd.Start() != nil {
		t.Errorf("start service-mcp: pipe errors %v, %v", errIn, errOut)
		return "", func() {}
	}
	kill := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
	_, _ = stdin.Write([]byte(initialize))
	buffer := make([]byte, 64<<10)
	n, _ := stdout.Read(buffer)
	return string(buffer[:n]), func() {
		kill.Stop()
		_ = stdin.Close()
		_ = cmd.Wait()
	}
}

// A script may run servicectl while it holds a lock, or in a test runner that waits until all writers of a pipe are
// gone. The daemon started by that, and its adapters, keep neither the lock nor the pipe open.
func TestDaemon_KeepsNoDescriptorsOfItsStarter(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"servicectl", "service-mcp"} {
		t.Run(program, func(t *testing.T) {
			w := newWorld(t, "")
			file := filepath.Join(t.TempDir(), "lock")
			lock, err := os.Create(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
				t.Fatal(err)
			}
			read, write, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer read.Close()
			cmd := w.command(program)
			if program == "servicectl" {
				cmd.Args = append(cmd.Args, "session", "list")
			}
			cmd.ExtraFiles = slices.Repeat([]*os.File{lock, write}, 10) // the first ones are replaced by other descriptors
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", program, err, out)
			}
			lock.Close()
			write.Close()
			if w.daemonPID() == 0 {
				t.Fatal("the daemon does not run")
			}
			again, err := os.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			defer again.Close()
			must(t, "the lock is free", func() bool { // a process just forked by another test holds it for a moment
				return syscall.Flock(int(again.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
			})
			if err := read.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadAll(read); err != nil {
				t.Errorf("the pipe still has a writer: %v", err)
			}
		})
	}
}
