//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/service-dev/service/internal/mcpclient"
)

// callTimeout is the maximum duration of a call. A call that takes longer counts as hanging.
const callTimeout = 60 * time.Second

// agent is an MCP client with its own service-mcp process. It is safe for concurrent calls.
type agent struct {
	name   string
	cmd    *exec.Cmd
	client *mcpclient.Client
}

// newAgent starts service-mcp. It reports lines that violate the protocol as findings.
func newAgent(name string, stateless bool, cmd *exec.Cmd, l *results) (*agent, error) {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	client, err := mcpclient.Start(ctx, cmd, mcpclient.Options{
		Name: "soak", Stateless: stateless,
		Unexpected: func(reason string, line []byte) { l.report("%s: %s: %.200s", name, reason, line) },
	})
	if err != nil {
		return nil, err
	}
	return &agent{name: name, cmd: cmd, client: client}, nil
}

var errHangs = errors.New("no answer in " + callTimeout.String())

// call calls a tool. The outcome is ok or an error code; the status auth_required counts as a code, too.
func (a *agent) call(tool string, args map[string]any) (answer map[string]any, outcome string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	r, err := a.client.Call(ctx, tool, args, nil)
	var refused *mcpclient.Error
	switch {
	case errors.As(err, &refused):
		var data struct{ Code string }
		if json.Unmarshal(refused.Data, &data) == nil && data.Code != "" {
			return nil, data.Code, nil
		}
		return nil, fmt.Sprintf("rpc %d: %s", refused.Code, refused.Message), nil
	case errors.Is(err, context.DeadlineExceeded):
		return nil, "", errHangs
	case err != nil:
		return nil, "", err
	}
	_ = json.Unmarshal(r.Structured, &answer) // stays nil for other content
	if r.IsError {
		code, _ := answer["code"].(string)
		return answer, code, nil
	}
	if answer["status"] == "auth_required" {
		return answer, "auth_required", nil
	}
	return answer, ok, nil
}

// close closes the connection and waits for service-mcp to exit.
func (a *agent) close() error { return a.client.Close(15 * time.Second) }
