// Package mcpclient is a small MCP client for a server that is a child process with stdio. It can call tools, report
// progress and detect protocol errors of the server. It is independent of the tools and of how the server works.
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

// Protocol revisions that the client supports: the latest one with a handshake, and the stateless
// one.
const (
	sessionVersion   = "2025-11-25"
	statelessVersion = "2026-07-28"
)

// Options describes the client to the server.
type Options struct {
	// Name is the client's name as sent to the server.
	Name string
	// Stateless selects the revision without a handshake.
	Stateless bool
	// Unexpected is called for each line from the server that violates the protocol. It may be nil.
	Unexpected func(reason string, line []byte)
}

// Progress is a progress notification of a call.
type Progress struct {
	Progress float64 `json:"progress"`
	Total    float64 `json:"total"`
	Message  string  `json:"message"`
}

// Result is the result of a tool call.
type Result struct {
	IsError    bool            `json:"isError"`
	Structured json.RawMessage `json:"structuredContent"`
}

// Error is a JSON-RPC error.
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (e *Error) Error() string { return e.Message }

// ErrEnded is returned if the server exited before it responded.
var ErrEnded = errors.New("the server exited before it responded")

// Client is a connection to one server. It is safe for concurrent calls. Call Close when done.
type Client struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	done  chan struct{} // closed at the end of the server's output
	opts  Options

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
	Error  *Error          `json:"error,omitempty"`
}

// Start starts a server and, unless the client is stateless, sends initialize. The server must exit when its input
// closes.
func Start(ctx context.Context, cmd *exec.Cmd, o Options) (*Client, error) {
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	c := &Client{cmd: cmd, stdin: stdin, done: make(chan struct{}), opts: o, waiting: map[int]*call{}}
	go func() { // ends with the child's stdout; Close waits for it
		defer close(c.done)
		c.read(stdout)
	}()
	if o.Stateless {
		return c, nil
	}
	params := map[string]any{"protocolVersion": sessionVersion, "capabilities": map[string]any{}, "clientInfo": c.info()}
	if err := c.request(ctx, "initialize", params, nil, nil); err != nil {
		_ = c.Close(5 * time.Second)
		return nil, fmt.Errorf("initialize %s: %w", cmd.Path, err)
	}
	return c, c.write(map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"})
}

func (c *Client) info() map[string]string {
	return map[string]string{"name": c.opts.Name, "version": "1"}
}

// Close closes the server's input and waits for the server to exit. After the duration limit it kills the server and
// returns an error.
func (c *Client) Close(limit time.Duration) error {
	_ = c.stdin.Close()
	kill := time.AfterFunc(limit, func() { _ = c.cmd.Process.Kill() })
	<-c.done
	err := c.cmd.Wait()
	if !kill.Stop() {
		return fmt.Errorf("the server was still running %s after its input was closed", limit)
	}
	return err
}

// Done returns a channel that is closed when the server has exited.
func (c *Client) Done() <-chan struct{} { return c.done }

// Call calls a tool. progress may be nil. On failure it returns an *Error, ErrEnded or ctx's error.
func (c *Client) Call(ctx context.Context, name string, args any, progress func(Progress)) (Result, error) {
	var r Result
	err := c.request(ctx, "tools/call", map[string]any{"name": name, "arguments": args}, &r, progress)
	return r, err
}

func (c *Client) request(ctx context.Context, method string, params map[string]any, into any,
	progress func(Progress)) error {
	waiting := &call{answer: make(chan message, 1), progress: progress}
	c.mu.Lock()
	c.last++
	id := c.last
	c.waiting[id] = waiting
	c.mu.Unlock()
	if meta := c.meta(id, progress != nil); len(meta) > 0 {
		params["_meta"] = meta
	}
	if err := c.write(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params}); err != nil {
		c.take(id)
		return err
	}
	var m message
	select {
	case m = <-waiting.answer:
	case <-c.done: // every response has been delivered by now
		select {
		case m = <-waiting.answer:
		default:
			return ErrEnded
		}
	case <-ctx.Done():
		c.take(id)
		_ = c.write(map[string]any{"jsonrpc": "2.0", "method": "notifications/cancelled",
			"params": map[string]any{"requestId": id}})
		return ctx.Err()
	}
	if m.Error != nil {
		return m.Error
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(m.Result, into)
}

// meta returns the metadata of a request.
func (c *Client) meta(id int, progress bool) map[string]any {
	meta := map[string]any{}
	if progress {
		meta["progressToken"] = id
	}
	if c.opts.Stateless {
		meta["io.modelcontextprotocol/protocolVersion"] = statelessVersion
		meta["io.modelcontextprotocol/clientInfo"] = c.info()
		meta["io.modelcontextprotocol/clientCapabilities"] = map[string]any{}
	}
	return meta
}

// write sends a message in a single write, so that messages of concurrent calls are not interleaved.
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
		if len(line) > 0 {
			c.receive(line)
		}
		if err != nil {
			return
		}
	}
}

func (c *Client) receive(line []byte) {
	var m message
	switch err := json.Unmarshal(line, &m); {
	case err != nil:
		c.unexpected("a line is no message", line)
	case m.Method == "notifications/progress":
		c.progress(m.Params)
	case m.Method != "" && m.ID != nil: // a request, which this client does not support
		_ = c.write(map[string]any{"jsonrpc": "2.0", "id": *m.ID, "error": Error{Code: -32601, Message: "method not found"}})
	case m.Method != "":
	case m.ID == nil:
		c.unexpected("an answer has no id", line)
	default:
		if waiting := c.take(*m.ID); waiting != nil {
			waiting.answer <- m
		} else {
			c.unexpected("no call is waiting for this response", line)
		}
	}
}

func (c *Client) unexpected(reason string, line []byte) {
	if c.opts.Unexpected != nil {
		c.opts.Unexpected(reason, line)
	}
}

// take removes a pending call and returns it.
func (c *Client) take(id int) *call {
	c.mu.Lock()
	defer c.mu.Unlock()
	waiting := c.waiting[id]
	delete(c.waiting, id)
	return waiting
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
