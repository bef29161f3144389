package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/ctl/internal/client"
	"github.com/service-dev/service/ctl/internal/command"
	"github.com/service-dev/service/ctl/internal/term"
)

func (a *app) session() *cobra.Command {
	return command.Group("session", "Inspect, record and replay glasses sessions, and run scenarios",
		"Covers local sessions (startLocalSimulation) and, with a linked account, browser sessions.\n"+
			"Without an id, a command uses the session last used from this directory.",
		a.sessionList(), a.sessionShow(), a.sessionLog(), a.sessionPicture(), a.sessionSheet(), a.sessionClose(),
		a.sessionRecord(), a.sessionReplay(), a.sessionRun(), a.sessionEnv(), a.sessionSchema())
}

// withSession adds a session id to a call's arguments. Without an id, the tool uses the latest session.
func withSession(id string, args map[string]any) map[string]any {
	if id != "" {
		args["sessionId"] = id
	}
	return args
}

// sessionFacts is a session in the result of getSessionStatus.
type sessionFacts struct {
	SessionID, State, Transport, Clock, Project, DeviceModel, SessionURL, AppEndpoint string
	CreatedAt                                                                         time.Time
	Apps, Pages                                                                       int
	NowMs, LastSeq                                                                    int64
}

func (a *app) sessionList() *cobra.Command {
	return command.New("list", "List the open sessions", "", func(ctx context.Context) error {
		var answer struct{ Sessions []sessionFacts }
		return a.PrintTool(ctx, "getSessionStatus", map[string]any{}, &answer, func() {
			if len(answer.Sessions) == 0 {
				a.Say("No session is open.")
				return
			}
			rows := [][]string{{"SESSION", "KIND", "GLASSES", "CLOCK", "APPS", "ROWS", "AGE", "PROJECT", "PAGE"}}
			for _, s := range answer.Sessions {
				age := "-"
				if !s.CreatedAt.IsZero() {
					age = term.Span(time.Since(s.CreatedAt))
				}
				rows = append(rows, []string{s.SessionID, s.Transport, s.DeviceModel, s.Clock, fmt.Sprint(s.Apps),
					fmt.Sprint(s.LastSeq), age, term.Dash(s.Project), term.Dash(s.SessionURL)})
			}
			a.Table(rows)
		})
	})
}

func (a *app) sessionShow() *cobra.Command {
	return &cobra.Command{
		Use: "show [ID]", Short: "Show a session and what its wearer sees", Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: a.Complete(sessionIDs),
		RunE: a.RunWithClient(func(ctx context.Context, c *client.Client, args []string) error {
			return a.showSession(ctx, c, command.FirstArg(args))
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

func (a *app) showSession(ctx context.Context, c *client.Client, id string) error {
	var display displayFacts
	shown, displayErr := command.CallTool(ctx, c, "getDisplayState", withSession(id, map[string]any{"picture": false}),
		&display)
	if id == "" {
		if displayErr != nil {
			return displayErr
		}
		id = display.SessionID
	}
	var answer struct{ Session sessionFacts }
	raw, err := command.CallTool(ctx, c, "getSessionStatus", map[string]any{"sessionId": id}, &answer)
	if err != nil {
		return err
	}
	if a.PrintsJSON {
		out := map[string]any{"session": field(raw, "session"), "display": shown}
		if displayErr != nil {
			out["display"], out["error"] = nil, command.ProblemOf(displayErr)
		}
		return a.JSON(out)
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
	a.Pairs(rows)
	if displayErr != nil {
		a.Facts([]term.Fact{{Name: "display", Lead: term.Cell{Text: command.ProblemOf(displayErr).Message}}})
		return nil
	}
	focus := ""
	for _, target := range display.Targets {
		if target.Focused {
			focus = target.ID
		}
	}
	a.SessionDisplay(display.Text, focus)
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

func (a *app) sessionClose() *cobra.Command {
	return &cobra.Command{
		Use: "close [ID]", Short: "End a session for everybody; a local session's log is deleted",
		ValidArgsFunction: a.Complete(sessionIDs),
		Args:              cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.summarized(cmd.Context(), "closeSession", withSession(command.FirstArg(args), map[string]any{}))
		},
	}
}

// summarized calls a tool and prints its summary.
func (a *app) summarized(ctx context.Context, tool string, args map[string]any) error {
	var answer struct{ Summary string }
	return a.PrintTool(ctx, tool, args, &answer, func() { a.Say("%s", answer.Summary) })
}

// absolute makes a path absolute, because the daemon has a different working directory.
func absolute(path string) (string, error) {
	full, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("find %s: %w", path, err)
	}
	return full, nil
}
