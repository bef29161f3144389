//go:build linux

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"time"
)

// The bounds of an agent: how long a call may take before it counts as hanging, and how long a line may be.
const (
	callTime = 60 * time.Second
	maxLine  = 16 << 20
)

// meta makes a request one of the stateless era (MCP 2026-07-28).
var meta = map[string]any{
	"io.modelcontextprotocol/protocolVersion":    "2026-07-28",
	"io.modelcontextprotocol/clientInfo":         map[string]any{"name": "soak", "version": "1"},
	"io.modelcontextprotocol/clientCapabilities": map[string]any{},
}

// agent is an MCP client over a service-mcp process of its own. Many calls may be under way at once.
type agent struct {
	name   string
	modern bool
	cmd    *exec.Cmd
	in     io.WriteCloser
	ledger *ledger
	done   chan struct{} // closed when the shim's output has ended

	mu      sync.Mutex
	next    int
	waiting map[int]chan reply
}

type reply struct {
	Result struct {
		IsError    bool           `json:"isError"`
		Structured map[string]any `json:"structuredContent"`
	} `json:"result"`
	Error *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Data    struct {
			Code string `json:"code"`
		} `json:"data"`
	} `json:"error"`
}

// newAgent starts the shim; those of the old era shake hands first.
func newAgent(name string, modern bool, cmd *exec.Cmd, l *ledger) (*agent, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	a := &agent{name: name, modern: modern, cmd: cmd, in: in, ledger: l, done: make(chan struct{}), waiting: map[int]chan reply{}}
	go func() {
		defer close(a.done)
		a.read(out)
	}()
	if modern {
		return a, nil
	}
	if _, err := a.request("initialize", map[string]any{
		"protocolVersion": "2025-11-25", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "soak", "version": "1"},
	}); err != nil {
		return nil, fmt.Errorf("initialize: %w", err)
	}
	return a, a.write(map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"})
}

// read gives each answer to the call that has its id, and nothing else may come.
func (a *agent) read(out io.Reader) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var head struct {
			ID     *int   `json:"id"`
			Method string `json:"method"`
		}
		var r reply
		if json.Unmarshal(lines.Bytes(), &head) != nil || json.Unmarshal(lines.Bytes(), &r) != nil {
			a.ledger.find("%s: a line that is no message: %.200s", a.name, lines.Text())
			continue
		}
		if head.Method != "" {
			continue // a notification
		}
		if head.ID == nil {
			a.ledger.find("%s: an answer without an id: %.200s", a.name, lines.Text())
			continue
		}
		a.mu.Lock()
		ch := a.waiting[*head.ID]
		delete(a.waiting, *head.ID)
		a.mu.Unlock()
		if ch == nil {
			a.ledger.find("%s: an answer that nobody waits for (a second one, or of another call): %.200s", a.name, lines.Text())
			continue
		}
		ch <- r
	}
}

var errHangs = errors.New("no answer in " + callTime.String())

// request sends one request and waits for its answer.
func (a *agent) request(method string, params map[string]any) (reply, error) {
	if a.modern {
		params["_meta"] = meta
	}
	ch := make(chan reply, 1)
	a.mu.Lock()
	a.next++
	id := a.next
	a.waiting[id] = ch
	a.mu.Unlock()
	if err := a.write(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params}); err != nil {
		return reply{}, err
	}
	timer := time.NewTimer(callTime)
	defer timer.Stop()
	select {
	case r := <-ch:
		return r, nil
	case <-a.done:
		return reply{}, errors.New("the shim ended")
	case <-timer.C:
		return reply{}, errHangs
	}
}

func (a *agent) write(message map[string]any) error {
	line, err := json.Marshal(message)
	if err != nil {
		return err
	}
	_, err = a.in.Write(append(line, '\n')) // one write, so that lines of two calls do not mix
	return err
}

// call calls a tool. The outcome is ok or the error's code; status auth_required is one too.
func (a *agent) call(tool string, args map[string]any) (answer map[string]any, outcome string, err error) {
	r, err := a.request("tools/call", map[string]any{"name": tool, "arguments": args})
	switch {
	case err != nil:
		return nil, "", err
	case r.Error != nil && r.Error.Data.Code != "":
		return nil, r.Error.Data.Code, nil
	case r.Error != nil:
		return nil, fmt.Sprintf("rpc %d: %s", r.Error.Code, r.Error.Message), nil
	}
	answer = r.Result.Structured
	if r.Result.IsError {
		code, _ := answer["code"].(string)
		return answer, code, nil
	}
	if answer["status"] == "auth_required" {
		return answer, "auth_required", nil
	}
	return answer, ok, nil
}

// close ends the conversation as an agent does, and waits for the shim.
func (a *agent) close() error {
	a.in.Close()
	gone := make(chan error, 1)
	go func() {
		<-a.done
		gone <- a.cmd.Wait()
	}()
	select {
	case err := <-gone:
		return err
	case <-time.After(15 * time.Second):
		_ = a.cmd.Process.Kill()
		<-gone
		return errors.New("it did not end within 15 s of its standard input")
	}
}
