package command

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/service-dev/service/ctl/internal/client"
	"github.com/service-dev/service/internal/problem"
)

// CallTool calls a tool and decodes its result. It returns an error if the tool fails or needs an account.
func CallTool(ctx context.Context, c *client.Client, tool string, args map[string]any, into any) (json.RawMessage,
	error) {
	raw, _, err := CallToolWithPictures(ctx, c, tool, args, into)
	return raw, err
}

// CallToolWithPictures is like CallTool but also returns the pictures in the result.
func CallToolWithPictures(ctx context.Context, c *client.Client, tool string, args map[string]any, into any) (
	json.RawMessage, []client.Picture, error) {
	text, err := json.Marshal(args)
	if err != nil {
		return nil, nil, err
	}
	r, err := c.CallTool(ctx, tool, string(text), nil)
	if err != nil {
		return nil, nil, err
	}
	raw, err := DecodeResult(tool, r, into)
	return raw, r.Images, missingSession(err, args)
}

// PrintTool calls a tool, decodes its result into into and prints it: as JSON with --json, or the text that say
// prints.
func (p *Program) PrintTool(ctx context.Context, tool string, args map[string]any, into any, say func()) error {
	return p.WithClient(ctx, func(c *client.Client) error {
		raw, err := CallTool(ctx, c, tool, args, into)
		if err != nil {
			return err
		}
		return p.Print(raw, say)
	})
}

// missingSession replaces the next step in a tool's error about an unknown session, because the tool's own step is
// for agents.
func missingSession(err error, args map[string]any) error {
	id, _ := args["sessionId"].(string)
	if id == "" || problem.CodeOf(err) != problem.CodeNotFound {
		return err
	}
	return &problem.Error{Code: problem.CodeNotFound, Message: fmt.Sprintf("no session %q is open", id),
		FixHint: "Run `servicectl session list` to see the open sessions."}
}

// DecodeResult decodes a tool's result.
func DecodeResult(tool string, r *client.Result, into any) (json.RawMessage, error) {
	raw := r.Structured
	if r.IsError {
		return nil, ToolError(tool, raw)
	}
	var status struct{ Status, Message string }
	if err := json.Unmarshal(raw, &status); err == nil && status.Status == "auth_required" {
		return nil, &problem.Error{Code: status.Status, Message: "this requires an account, but none is linked",
			FixHint: "Run `servicectl login`."}
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return nil, fmt.Errorf("decode the result of %s: %w", tool, err)
	}
	return raw, nil
}

// ToolError converts a tool's error result to a typed error.
func ToolError(name string, structured json.RawMessage) error {
	var p struct {
		Code, Message, FixHint string
		Retryable              bool
	}
	if json.Unmarshal(structured, &p) != nil || p.Code == "" {
		return fmt.Errorf("call %s: unreadable error result", name)
	}
	return &problem.Error{Code: p.Code, Message: p.Message, FixHint: p.FixHint, Retryable: p.Retryable}
}
