package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/ctl/internal/client"
	"github.com/service-dev/service/ctl/internal/command"
	"github.com/service-dev/service/proto/control"
)

func (a *app) tool() *cobra.Command {
	var pairs []string
	call := &cobra.Command{
		Use: "call NAME [JSON]", Short: "Call a tool as an agent would", Args: cobra.RangeArgs(1, 2),
		ValidArgsFunction: a.Complete(toolNames),
		Long: "Prints the tool's structured result. Arguments are one JSON object, or --arg name=value; a value that is\n" +
			"JSON is passed as JSON.\n" +
			"Exit code: 0 done, 1 the tool refused or an account has to be linked, 2 it could not be called.",
		RunE: func(cmd *cobra.Command, args []string) error {
			arguments, err := toolArguments(args[1:], pairs)
			if err != nil {
				return err
			}
			return a.WithClient(cmd.Context(), func(c *client.Client) error {
				return a.callTool(cmd.Context(), c, args[0], arguments)
			})
		},
	}
	call.Flags().StringArrayVar(&pairs, "arg", nil, "one argument, name=value (may be repeated)")
	return command.Group("tool", "Use the agent's tools by hand", "", call,
		command.Query(a.Program, "list", "List the tools", "", (*client.Client).Tools,
			func(list []client.Tool) any { return control.Tools{Tools: list} }, a.showTools))
}

func (a *app) showTools(list []client.Tool) {
	rows := [][]string{{"TOOL", "ACCOUNT", "WHAT"}}
	for _, t := range list {
		need := "no"
		if t.NeedsAccount {
			need = "yes"
		}
		rows = append(rows, []string{t.Name, need, t.Title})
	}
	a.Table(rows)
}

// toolArguments returns the arguments of a call as a JSON object.
func toolArguments(object, pairs []string) (string, error) {
	args := map[string]json.RawMessage{}
	if len(object) > 0 {
		if err := json.Unmarshal([]byte(object[0]), &args); err != nil || args == nil {
			return "", errors.New("parse arguments: must be a JSON object")
		}
	}
	for _, pair := range pairs {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return "", fmt.Errorf("parse --arg %q: must be name=value", pair)
		}
		if json.Valid([]byte(value)) {
			args[name] = json.RawMessage(value)
			continue
		}
		quoted, err := json.Marshal(value)
		if err != nil {
			return "", fmt.Errorf("parse --arg %q: %w", pair, err)
		}
		args[name] = quoted
	}
	text, err := json.Marshal(args)
	return string(text), err
}

func (a *app) callTool(ctx context.Context, c *client.Client, name, arguments string) error {
	r, err := c.CallTool(ctx, name, arguments, func(p *client.Progress) {
		if p.Message != "" {
			a.Remark("%s", p.Message)
		}
	})
	if err != nil {
		return err
	}
	if err := a.JSON(r.Structured); err != nil {
		return err
	}
	var status struct{ Status, Code string }
	_ = json.Unmarshal(r.Structured, &status) // a result without a status is a success
	if status.Code == "unknown_tool" {
		a.suggestTool(ctx, c, name)
	}
	if r.IsError || status.Status == "auth_required" {
		return command.ExitNo
	}
	return nil
}

// suggestTool suggests tools with a similar name.
func (a *app) suggestTool(ctx context.Context, c *client.Client, name string) {
	var known []string
	tools, _ := c.Tools(ctx)
	for _, t := range tools {
		known = append(known, t.Name)
	}
	if similar := command.SimilarTo(name, known); len(similar) > 0 {
		a.Next("%s", command.DidYouMean("servicectl tool call ", similar))
	}
}
