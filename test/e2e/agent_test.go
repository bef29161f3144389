//go:build unix

package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// agent is the official TypeScript client over service-mcp, in its own process.
type agent struct {
	t       *testing.T
	stdin   io.WriteCloser
	mu      sync.Mutex
	next    int
	waiting map[int]chan agentLine
	// elicited receives each URL elicitation, and progressed each progress message.
	elicited   chan map[string]any
	progressed chan map[string]any
}

type agentLine struct {
	ID       int             `json:"id"`
	Ready    json.RawMessage `json:"ready"`
	Result   json.RawMessage `json:"result"`
	Error    *rpcError       `json:"error"`
	Elicit   map[string]any  `json:"elicit"`
	Progress map[string]any  `json:"progress"`
}

type rpcError struct {
	Code    any    `json:"code"`
	Message string `json:"message"`
}

// toolResult is the result of tools/call.
type toolResult struct {
	IsError    bool           `json:"isError"`
	Structured map[string]any `json:"structuredContent"`
	Content    []struct {
		Type, Text, Data, MIMEType string
	} `json:"content"`
}

func nodeTool(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("npm", "node_modules", name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		missing(t, name, "make npm")
	}
	return path
}

// needAgent skips a test that cannot start an agent.
func needAgent(t *testing.T) {
	t.Helper()
	nodeTool(t, "node/bin/node")
}

// startAgent starts an agent that speaks the given protocol generation ("legacy" or "modern"). With elicit, the agent
// declares support for URL elicitation.
func startAgent(w *world, protocol string, elicit bool) *agent {
	t := w.t
	t.Helper()
	node := nodeTool(t, "node/bin/node")
	client, err := filepath.Abs(filepath.Join("npm", "agent.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	args := []string{client, "--era", protocol}
	if elicit {
		args = append(args, "--elicit")
	}
	cmd := exec.Command(node, append(args, "--", filepath.Join(w.bin, "service-mcp"))...)
	cmd.Env, cmd.Stderr, cmd.Dir = w.env, os.Stderr, w.project
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	a := &agent{t: t, stdin: stdin, waiting: map[int]chan agentLine{}, elicited: make(chan map[string]any, 16),
		progressed: make(chan map[string]any, 1024)}
	ready := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.read(stdout, ready)
	}()
	t.Cleanup(func() {
		stdin.Close()
		<-done
		cmd.Wait()
	})
	select {
	case <-ready:
	case <-done:
		t.Fatal("the agent exited before it was ready")
	case <-time.After(30 * time.Second):
		cmd.Process.Kill()
		t.Fatal("the agent was not ready within 30 s")
	}
	return a
}

func (a *agent) read(stdout io.Reader, ready chan<- struct{}) {
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var line agentLine
		if json.Unmarshal(lines.Bytes(), &line) != nil {
			continue
		}
		switch {
		case line.Ready != nil:
			close(ready)
		case line.Elicit != nil:
			a.elicited <- line.Elicit
		case line.Progress != nil:
			a.progressed <- line.Progress
		case line.Result != nil || line.Error != nil:
			a.mu.Lock()
			ch := a.waiting[line.ID]
			delete(a.waiting, line.ID)
			a.mu.Unlock()
			if ch != nil {
				ch <- line
			}
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, ch := range a.waiting {
		ch <- agentLine{ID: id, Error: &rpcError{Message: "the agent ended"}}
	}
	a.waiting = nil
}

func (a *agent) send(message map[string]any) (int, <-chan agentLine) {
	a.t.Helper()
	a.mu.Lock()
	a.next++
	id := a.next
	ch := make(chan agentLine, 1)
	a.waiting[id] = ch
	a.mu.Unlock()
	message["id"] = id
	a.write(message)
	return id, ch
}

func (a *agent) write(message map[string]any) {
	a.t.Helper()
	data, err := json.Marshal(message)
	if err != nil {
		a.t.Fatal(err)
	}
	if _, err := a.stdin.Write(append(data, '\n')); err != nil {
		a.t.Fatal(err)
	}
}

// start begins a call. It returns the call's number, for cancel, and a channel that receives its result.
func (a *agent) start(tool string, args map[string]any, progress bool, timeout time.Duration) (int, <-chan agentLine) {
	a.t.Helper()
	return a.send(map[string]any{"call": tool, "args": args, "progress": progress, "timeoutMs": timeout.Milliseconds()})
}

func (a *agent) cancel(id int) { a.write(map[string]any{"cancel": id}) }

func (a *agent) wait(ch <-chan agentLine) toolResult {
	a.t.Helper()
	select {
	case line := <-ch:
		if line.Error != nil {
			a.t.Fatalf("the call failed with a protocol error: %v", *line.Error)
		}
		var result toolResult
		if err := json.Unmarshal(line.Result, &result); err != nil {
			a.t.Fatal(err)
		}
		if result.Structured == nil && len(result.Content) > 0 { // an answer with pictures has only text content
			if err := json.Unmarshal([]byte(result.Content[0].Text), &result.Structured); err != nil {
				a.t.Fatalf("the result's text is not JSON: %v", err)
			}
		}
		return result
	case <-time.After(2 * time.Minute):
		a.t.Fatal("no result within 2 minutes")
		return toolResult{}
	}
}

// call calls a tool and waits for its result.
func (a *agent) call(tool string, args map[string]any) toolResult {
	a.t.Helper()
	_, ch := a.start(tool, args, true, time.Minute)
	return a.wait(ch)
}

// str returns a string field of the structured content and fails the test if it is missing.
func (r toolResult) str(t *testing.T, field string) string {
	t.Helper()
	s, ok := r.Structured[field].(string)
	if !ok || s == "" {
		t.Fatalf("no string %s in %v", field, r.Structured)
	}
	return s
}

// freePort returns a port below the ranges that systems use for ephemeral ports.
func freePort(t *testing.T) int {
	t.Helper()
	for range 100 {
		l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", 20_000+rand.IntN(12_000)))
		if err == nil {
			defer l.Close()
			return l.Addr().(*net.TCPAddr).Port
		}
	}
	t.Fatal("found no free port")
	return 0
}

func get(url string) int {
	resp, err := http.Get(url)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

func readJSON(path string, into any) bool {
	data, err := os.ReadFile(path)
	return err == nil && json.Unmarshal(data, into) == nil
}
