package session

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/ctl/internal/client"
	"github.com/service-dev/service/ctl/internal/command"
	"github.com/service-dev/service/ctl/internal/term"
)

func (p *program) show() *cobra.Command {
	return &cobra.Command{
		Use: "show [ID]", Short: "Show a session and what its wearer sees", Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: p.Complete(IDs),
		RunE: p.RunWithClient(func(ctx context.Context, c *client.Client, args []string) error {
			return p.showSession(ctx, c, command.FirstArg(args))
		}),
	}
}

// displayFacts is the result of getDisplayState.
type displayFacts struct {
	SessionID string
	Text      []string
	Summary   string
	Targets   []struct {
		ID      string
		Focused bool
	}
	State struct {
		Battery struct {
			Level    int
			Charging bool
		}
		Worn                       bool
		Hinge, Thermal, Link       string
		Running, Phrases, Disabled []string
		Permissions                map[string]string
		Call                       bool
	}
}

func (p *program) showSession(ctx context.Context, c *client.Client, id string) error {
	var display displayFacts
	shown, displayErr := command.CallTool(ctx, c, "getDisplayState", withSession(id, map[string]any{"picture": false}),
		&display)
	if id == "" {
		if displayErr != nil {
			return displayErr
		}
		id = display.SessionID
	}
	var answer struct{ Session facts }
	raw, err := command.CallTool(ctx, c, "getSessionStatus", map[string]any{"sessionId": id}, &answer)
	if err != nil {
		return err
	}
	if p.PrintsJSON {
		out := map[string]any{"session": field(raw, "session"), "display": shown}
		if displayErr != nil {
			out["display"], out["error"] = nil, command.ProblemOf(displayErr)
		}
		return p.JSON(out)
	}
	s := answer.Session
	rows := [][]string{
		{"session", s.SessionID + " (" + s.State + ")"}, {"project", term.Dash(s.Project)}, {"glasses", s.DeviceModel},
		{"clock", fmt.Sprintf("%s, at %d ms", s.Clock, s.NowMs)},
		{"attached", fmt.Sprintf("%d apps, %d pages", s.Apps, s.Pages)},
		{"log", fmt.Sprintf("%d rows", s.LastSeq)}, {"app endpoint", term.Dash(s.AppEndpoint)},
	}
	if s.SessionURL != "" {
		rows = append(rows, []string{"page", s.SessionURL})
	}
	if displayErr == nil {
		rows = append(rows, []string{"state", display.summary()})
	}
	p.Pairs(rows)
	if displayErr != nil {
		p.Facts([]term.Fact{{Name: "display", Lead: term.Cell{Text: command.ProblemOf(displayErr).Message}}})
		return nil
	}
	focus := ""
	for _, target := range display.Targets {
		if target.Focused {
			focus = target.ID
		}
	}
	p.SessionDisplay(display.Text, focus)
	return nil
}

// summary describes the state of the glasses in one line.
func (d displayFacts) summary() string {
	s := d.State
	worn := "worn"
	if !s.Worn {
		worn = "not worn"
	}
	text := fmt.Sprintf("%s, %s, battery %d %%, %s, link %s", worn, s.Hinge, s.Battery.Level, s.Thermal, s.Link)
	if s.Call {
		text += ", in a call"
	}
	for _, stream := range s.Running {
		text += ", " + stream + " runs"
	}
	return text
}

// field returns one member of a JSON object, or null.
func field(raw json.RawMessage, name string) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil || members[name] == nil {
		return json.RawMessage("null")
	}
	return members[name]
}
