package mcpgate

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/tools"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeTools is a catalogue for testing connections.
type fakeTools struct {
	mu      sync.Mutex
	callers []caller.Caller
	release chan struct{} // ends "slow"
	begun   chan struct{} // signals that "slow" is running
	ended   chan error    // receives how "slow" ended
}

func newFakeTools() *fakeTools {
	return &fakeTools{release: make(chan struct{}), begun: make(chan struct{}, 16), ended: make(chan error, 16)}
}

func (f *fakeTools) List() []tools.Tool {
	object := json.RawMessage(`{"type":"object"}`)
	var list []tools.Tool
	for _, name := range []string{"echo", "slow", "waits", "polls", "link", "picture"} {
		list = append(list, tools.Tool{
			Name: name, Title: name, Description: name, InputSchema: object, OutputSchema: object,
			Annotations: tools.Annotations{ReadOnly: name != "link", Idempotent: name != "polls"}, Waits: name == "waits",
		})
	}
	return list
}

func (f *fakeTools) Call(ctx context.Context, name string, args json.RawMessage, io tools.IO) tools.Result {
	f.mu.Lock()
	f.callers = append(f.callers, caller.From(ctx))
	f.mu.Unlock()
	switch name {
	case "slow", "waits":
		f.begun <- struct{}{}
		select {
		case <-f.release:
			f.ended <- nil
		case <-ctx.Done():
			f.ended <- ctx.Err()
		}
	case "polls":
		for i := range 3 {
			if io.Progress != nil {
				io.Progress(float64(i+1), 3, "poll")
			}
		}
	case "link":
		return f.link(ctx, io)
	case "picture":
		return tools.Result{Structured: json.RawMessage(`{"status":"ok"}`), Text: "a screen",
			Images: []tools.Image{{MIME: "image/png", Data: []byte("\x89PNG")}}, Outcome: tools.OutcomeOK}
	}
	if len(args) == 0 {
		args = json.RawMessage(`{}`)
	}
	if string(args) == `{"long":true}` {
		args = json.RawMessage(`{"summary":"","text":"` + strings.Repeat("<", 300_000) + `"}`)
	}
	failed := string(args) == `{"fail":true}`
	return tools.Result{IsError: failed, Structured: args, Text: string(args), Outcome: tools.OutcomeOK}
}

func (f *fakeTools) link(ctx context.Context, io tools.IO) tools.Result {
	if io.Elicit == nil {
		return tools.Result{Structured: json.RawMessage(`{"status":"auth_required"}`), Text: "show the code",
			Outcome: "auth_required"}
	}
	accepted, err := io.Elicit(ctx, "open the page", "http://localhost/activate?code=X")
	if err != nil {
		return tools.Result{IsError: true, Structured: json.RawMessage(`{"code":"x"}`), Text: err.Error(), Outcome: "x"}
	}
	if !accepted {
		return tools.Result{Structured: json.RawMessage(`{"status":"auth_required"}`), Text: "declined",
			Outcome: "auth_required"}
	}
	return tools.Result{Structured: json.RawMessage(`{"linked":true}`), Text: "linked", Outcome: tools.OutcomeOK}
}

func (f *fakeTools) lastCaller() caller.Caller {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.callers[len(f.callers)-1]
}

// client exchanges lines with a gate.
type client struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

const goodHandshake = `{"mcp":1,"protocolMin":1,"protocolMax":1,"version":"1.2.3","client":"service-mcp","cwd":"/home/a","env":{"CI":"1","SECRET":"x"}}`

// start serves one gate on a Unix socket until the test ends.
func start(t *testing.T, opts Options) (dial func() *client, gate *Gate) {
	t.Helper()
	opts.Version = "9.9"
	gate = New(opts)
	path := filepath.Join(t.TempDir(), "m.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- gate.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve returned %v, want nil", err)
		}
	})
	return func() *client {
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		_ = conn.SetDeadline(time.Now().Add(time.Minute))
		return &client{t: t, conn: conn, in: bufio.NewReader(conn)}
	}, gate
}

// started returns a client whose handshake was accepted.
func started(t *testing.T, opts Options) (*client, *Gate) {
	dial, gate := start(t, opts)
	c := dial()
	c.send(goodHandshake)
	if answer := c.receive(); answer["ok"] != true || answer["version"] != "9.9" {
		t.Fatalf("handshake answered with %v, want it accepted", answer)
	}
	return c, gate
}

func (c *client) send(lines ...string) {
	c.t.Helper()
	if _, err := c.conn.Write([]byte(strings.Join(lines, "\n") + "\n")); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) line() string {
	c.t.Helper()
	line, err := c.in.ReadString('\n')
	if err != nil {
		c.t.Fatalf("reading an answer: %v (got %q)", err, line)
	}
	return line
}

func (c *client) receive() map[string]any {
	c.t.Helper()
	line := c.line()
	var m map[string]any
	if err := json.Unmarshal([]byte(line), &m); err != nil {
		c.t.Fatalf("answer %q: %v", line, err)
	}
	return m
}

// dig returns the value under nested keys.
func dig(m map[string]any, keys ...string) any {
	var v any = m
	for _, key := range keys {
		object, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = object[key]
	}
	return v
}

const (
	initialize  = `{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"agent-x","version":"2"}}}`
	initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	modernMeta  = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"agent-y","version":"3"},"io.modelcontextprotocol/clientCapabilities":{}}`
	modernURL   = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"url":{}}}}`
)

func (c *client) initialize() {
	c.t.Helper()
	c.send(initialize)
	if got := dig(c.receive(), "result", "protocolVersion"); got != "2025-11-25" {
		c.t.Fatalf("negotiated %v", got)
	}
	c.send(initialized)
}

// The response to the handshake lists the read-only tools. Calling them twice is harmless, and none of them waits for
// the user.
func TestHandshakeNamesRepeatableTools(t *testing.T) {
	dial, _ := start(t, Options{Catalogue: newFakeTools()})
	c := dial()
	c.send(goodHandshake)
	if got := fmt.Sprint(c.receive()["repeatable"]); got != "[echo slow picture]" {
		t.Errorf("repeatable tools: %s, want the read-only ones", got)
	}
}

func TestEveryInitializeRevision(t *testing.T) {
	for _, revision := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"} {
		c, _ := started(t, Options{Catalogue: newFakeTools()})
		c.send(strings.Replace(initialize, "2025-11-25", revision, 1), initialized,
			`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`,
		)
		result := c.receive()
		if got := dig(result, "result", "protocolVersion"); got != revision {
			t.Errorf("requested revision %s, got %v; want the same", revision, got)
		}
		if dig(result, "result", "capabilities", "logging") != nil {
			t.Error("the server advertises logging")
		}
		if list, _ := dig(c.receive(), "result", "tools").([]any); len(list) != 6 {
			t.Errorf("%s lists %d tools, want 6", revision, len(list))
		}
		c.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"a":1}}}`)
		if got := dig(c.receive(), "result", "structuredContent", "a"); got != 1.0 {
			t.Errorf("echo answered with %v, want 1", got)
		}
	}
}

func TestStatelessCalls(t *testing.T) {
	f := newFakeTools()
	c, _ := started(t, Options{Catalogue: f})
	c.send(`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{` + modernMeta + `}}`)
	if versions, _ := dig(c.receive(), "result", "supportedVersions").([]any); len(versions) != 5 {
		t.Errorf("discover names the versions %v, want 5", versions)
	}
	c.send(`{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{` + modernMeta + `}}`)
	if list, _ := dig(c.receive(), "result", "tools").([]any); len(list) != 6 {
		t.Errorf("%d tools, want 6", len(list))
	}
	c.send(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"echo","arguments":{"b":"x"},` + modernMeta +
		`}}`)
	if got := c.receive(); dig(got, "result", "structuredContent", "b") != "x" ||
		dig(got, "result", "resultType") != "complete" {
		t.Errorf("echo answered with %v, want x", got)
	}
	who := f.lastCaller()
	if who.Client != "agent-y" || who.Cwd != "/home/a" || who.Env["CI"] != "1" || who.Env["SECRET"] != "" {
		t.Errorf("caller is %+v, want agent-y in /home/a without SECRET", who)
	}
}

func TestDiscoverThenInitialize(t *testing.T) {
	c, _ := started(t, Options{Catalogue: newFakeTools()})
	c.send(`{"jsonrpc":"2.0","id":0,"method":"server/discover","params":{` + modernMeta + `}}`)
	c.receive()
	c.initialize()
	c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{}}}`)
	if got := c.receive(); got["error"] != nil {
		t.Errorf("a call after both generations: %v, want no error", got)
	}
}
