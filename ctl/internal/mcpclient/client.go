// Package mcpclient is a small MCP client over a child process's stdio: just enough to call a tool as an agent would,
// for the demo. It must not know the tools, nor the daemon: everything goes through service-mcp, as for a stranger.
package mcpclient

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"time"
)

// protocolVersion is the revision that this client speaks: the last one with a handshake.
const protocolVersion = "2025-11-25"

// Progress is a server's word on a call under way.
type Progress struct {
	Progress float64 `json:"progress"`
	Total    float64 `json:"total"`
	Message  string  `json:"message"`
}

// Result is what a tool answered.
type Result struct {
	IsError    bool            `json:"isError"`
	Structured json.RawMessage `json:"structuredContent"`
}

// Client talks to one server. Close it.
type Client struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	done  chan struct{}

	writeMu sync.Mutex
	mu      sync.Mutex
	last    int
	waiting map[int]*call
}

type call struct {
	answer   chan message
	progress func(Progress)
}

type message struct {
	ID     *int            `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// Start runs the server and shakes hands. env is the child's whole environment; stderr hears its complaints.
func Start(ctx context.Context, path string, env []string, stderr io.Writer) (*Client, error) {
	cmd := exec.Command(path) //nolint:noctx // it ends with its input, not with a context
	cmd.Env, cmd.Stderr = env, stderr
	detach(cmd)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", path, err)
	}
	c := &Client{cmd: cmd, stdin: stdin, done: make(chan struct{}), waiting: map[int]*call{}}
	go func() { // ends with the child's stdout; Close waits for it
		defer close(c.done)
		c.read(stdout)
	}()
	params := map[string]any{
		"protocolVersion": protocolVersion, "capabilities": map[string]any{},
		"clientInfo": map[string]string{"name": "servicectl-demo", "version": "1"},
	}
	if err := c.request(ctx, "initialize", params, nil, nil); err != nil {
		c.Close()
		return nil, fmt.Errorf("shaking hands with %s: %w", path, err)
	}
	return c, c.write(map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"})
}

// Close ends the conversation and waits for the server to exit, which it must within five seconds.
func (c *Client) Close() {
	_ = c.stdin.Close()
	kill := time.AfterFunc(5*time.Second, func() { _ = c.cmd.Process.Kill() })
	defer kill.Stop()
	<-c.done
	_ = c.cmd.Wait()
}

// Done is closed when the server is gone.
func (c *Client) Done() <-chan struct{} { return c.done }

// Call calls a tool. progress may be nil.
func (c *Client) Call(ctx context.Context, name string, args any, progress func(Progress)) (Result, error) {
	var r Result
	err := c.request(ctx, "tools/call", map[string]any{"name": name, "arguments": args}, &r, progress)
	return r, err
}

func (c *Client) request(ctx context.Context, method string, params map[string]any, into any, progress func(Progress)) error {
	waiting := &call{answer: make(chan message, 1), progress: progress}
	c.mu.Lock()
	c.last++
	id := c.last
	c.waiting[id] = waiting
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.waiting, id)
		c.mu.Unlock()
	}()
	if progress != nil {
		params["_meta"] = map[string]any{"progressToken": id}
	}
	if err := c.write(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params}); err != nil {
		return err
	}
	select {
	case m := <-waiting.answer:
		if m.Error != nil {
			return errors.New(m.Error.Message)
		}
		if into == nil {
			return nil
		}
		return json.Unmarshal(m.Result, into)
	case <-c.done:
		return errors.New("the server ended before it answered")
	case <-ctx.Done():
		_ = c.write(map[string]any{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": map[string]any{"requestId": id}})
		return ctx.Err()
	}
}

func (c *Client) write(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	_, err = c.stdin.Write(append(line, '\n'))
	return err
}

func (c *Client) read(stdout io.Reader) {
	r := bufio.NewReader(stdout)
	for {
		line, err := r.ReadBytes('\n')
		var m message
		if json.Unmarshal(line, &m) == nil {
			c.heard(m)
		}
		if err != nil {
			return
		}
	}
}

func (c *Client) heard(m message) {
	if m.Method == "notifications/progress" {
		c.progress(m.Params)
		return
	}
	if m.ID == nil {
		return
	}
	if m.Method != "" { // the server asks for what this client did not offer
		_ = c.write(map[string]any{"jsonrpc": "2.0", "id": *m.ID, "error": map[string]any{"code": -32601, "message": "method not found"}})
		return
	}
	c.mu.Lock()
	waiting := c.waiting[*m.ID]
	delete(c.waiting, *m.ID)
	c.mu.Unlock()
	if waiting != nil {
		waiting.answer <- m
	}
}

func (c *Client) progress(params json.RawMessage) {
	var p struct {
		Token int `json:"progressToken"`
		Progress
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	c.mu.Lock()
	waiting := c.waiting[p.Token]
	c.mu.Unlock()
	if waiting != nil && waiting.progress != nil {
		waiting.progress(p.Progress)
	}
}
