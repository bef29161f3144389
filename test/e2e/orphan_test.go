//go:build unix

package e2e

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// service-mcp exits if its agent is killed, even if another process holds the agent's end of the pipe. It continues
// if only its launcher has exited.
func TestServiceMCP_ParentGone(t *testing.T) {
	t.Parallel()
	for _, lives := range []bool{false, true} {
		w := newWorld(t, "")
		in, toShim, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		fromShim, out, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		// This test acts as the other process: it holds the other end of the pipe.
		parent := exec.Command("sh", "-c", `"$0" <&3 & wait`, filepath.Join(w.bin, "service-mcp"))
		parent.Env, parent.ExtraFiles, parent.Stdout = w.env, []*os.File{in}, out
		if err := parent.Start(); err != nil {
			t.Fatal(err)
		}
		in.Close()
		out.Close()
		late := time.AfterFunc(40*time.Second, func() { fromShim.Close(); toShim.Close() })
		lines := bufio.NewReader(fromShim)
		say := func(line string) string {
			t.Helper()
			if _, err := io.WriteString(toShim, strings.TrimSpace(line)+"\n"); err != nil {
				t.Fatal(err)
			}
			answer, err := lines.ReadString('\n')
			if err != nil {
				t.Fatalf("no response to %s: %v", line, err)
			}
			return answer
		}
		if got := say(initialize); !strings.Contains(got, "serverInfo") {
			t.Fatalf("response to initialize: got %s, want the server's answer", got)
		}
		_ = parent.Process.Kill()
		_ = parent.Wait()
		var ping struct{ ID, Method string }
		line, err := lines.ReadString('\n')
		if err != nil || json.Unmarshal([]byte(line), &ping) != nil || ping.Method != "ping" {
			t.Fatalf("service-mcp sent %q (error %v), want a ping", line, err)
		}
		if lives {
			answer := `{"jsonrpc":"2.0","id":"` + ping.ID + `","result":{}}`
			for range 2 {
				if got := say(answer + "\n" + `{"jsonrpc":"2.0","id":5,"method":"ping"}`); !strings.Contains(got,
					`"id":5`) {
					t.Errorf("after the ping, the running session answered %s, want the answer to request 5", got)
				}
				answer = ""
				time.Sleep(6 * time.Second) // longer than service-mcp waits for the answer to a ping
			}
			toShim.Close()
		}
		begun := time.Now()
		if rest, err := io.ReadAll(lines); err != nil || len(rest) > 0 || time.Since(begun) > 10*time.Second {
			t.Errorf("service-mcp exited after %s with output %q (error %v), want no output within 10 s", time.Since(begun),
				rest, err)
		}
		late.Stop()
		toShim.Close()
		fromShim.Close()
	}
}
