//go:build unix

package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
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

// attached returns the response to an agent's initialize; the agent stays connected until leave is called.
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
