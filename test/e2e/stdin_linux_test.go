package e2e

import (
	"bufio"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A supervisor may start service-mcp again on the same pipe. The pipe keeps the flags that the first process set.
func TestShim_AfterAnotherOnTheSamePipe(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	var fds [2]int
	if err := syscall.Pipe2(fds[:], syscall.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	in, agent := os.NewFile(uintptr(fds[0]), "in"), os.NewFile(uintptr(fds[1]), "agent")
	defer in.Close()
	defer agent.Close()
	for range 2 {
		cmd := w.command("service-mcp")
		cmd.Stdin = in
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		hung := time.AfterFunc(30*time.Second, func() { _ = cmd.Process.Kill() })
		lines := bufio.NewReader(out)
		for _, exchange := range [][2]string{
			{initialize, "serverInfo"}, {`{"jsonrpc":"2.0","id":2,"method":"ping"}` + "\n", `"id":2`},
		} {
			if _, err := io.WriteString(agent, exchange[0]); err != nil {
				t.Fatal(err)
			}
			if line, err := lines.ReadString('\n'); err != nil || !strings.Contains(line, exchange[1]) {
				t.Errorf("%q, %v; want a response with %s", line, err, exchange[1])
			}
		}
		hung.Stop()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}
