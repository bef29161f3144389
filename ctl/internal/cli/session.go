package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/ctl/internal/client"
	"github.com/service-dev/service/ctl/internal/term"
)

func (a *app) session() *cobra.Command {
	return group("session", "Inspect, record and replay glasses sessions, and run scenarios",
		"Covers local sessions (startLocalSimulation) and, with a linked account, browser sessions.\n"+
			"Without an id, a command uses the session last used from this directory.",
		a.sessionList(), a.sessionShow(), a.sessionLog(), a.sessionPicture(), a.sessionSheet(), a.sessionClose(),
		a.sessionRecord(), a.sessionReplay(), a.sessionRun(), a.sessionEnv(), a.sessionSchema())
}

// ask calls a tool and decodes its result. It returns an error if the tool fails or needs an account.
func ask(ctx context.Context, c *client.Client, tool string, args map[string]any, into any) (json.RawMessage, error) {
	raw, _, err := askPictured(ctx, c, tool, args, into)
	return raw, err
}

// askPictured is like ask but also returns the pictures in the result.
func askPictured(ctx context.Context, c *client.Client, tool string, args map[string]any, into any) (json.RawMessage,
	[]*client.Picture, error) {
	text, err := json.Marshal(args)
	if err != nil {
		return nil, nil, err
	}
	r, err := c.CallTool(ctx, tool, string(text), func(*client.Progress) {})
	if err != nil {
		return nil, nil, err
	}
	raw, err := decodeResult(tool, r, into)
	return raw, r.GetImages(), missingSession(err, args)
}

// missingSession replaces the next step in a tool's error about an unknown session, because that step is written for
// agents.
func missingSession(err error, args map[string]any) error {
	id, _ := args["sessionId"].(string)
	var refused *client.Error
	if id == "" || !errors.As(err, &refused) || refused.Code != codeNotFound {
		return err
	}
	return &client.Error{Code: codeNotFound, Message: fmt.Sprintf("no session %q is open", id),
		FixHint: "`servicectl session list` shows the open sessions"}
}

// decodeResult decodes a tool's result.
func decodeResult(tool string, r *client.Result, into any) (json.RawMessage, error) {
	raw := rawJSON(r.GetStructured())
	if r.GetIsError() {
		return nil, toolError(tool, raw)
	}
	var status struct{ Status, Message string }
	if err := json.Unmarshal(raw, &status); err == nil && status.Status == "auth_required" {
		return nil, &client.Error{Code: status.Status, Message: "this requires an account, but none is linked",
			FixHint: "run `servicectl login`"}
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return nil, fmt.Errorf("decode the result of %s: %w", tool, err)
	}
	return raw, nil
}

// withSession adds a session id to a call's arguments. Without an id, the tool uses the latest session.
func withSession(id string, args map[string]any) map[string]any {
	if id != "" {
		args["sessionId"] = id
	}
	return args
}

func first(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

// sessionFacts is a session in the result of getSessionStatus.
type sessionFacts struct {
	SessionID, State, Transport, Clock, Project, DeviceModel, SessionURL, AppEndpoint string
	CreatedAt                                                                         time.Time
	Apps, Pages                                                                       int
	NowMs, LastSeq                                                                    int64
}

func (a *app) sessionList() *cobra.Command {
	return command("list", "List the open sessions", "", func(ctx context.Context) error {
		var answer struct{ Sessions []sessionFacts }
		return a.oneCall(ctx, "getSessionStatus", map[string]any{}, &answer, func() {
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
		ValidArgsFunction: a.complete(sessionIDs),
		RunE: a.connectedRun(func(ctx context.Context, c *client.Client, args []string) error {
			return a.showSession(ctx, c, first(args))
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
	shown, displayErr := ask(ctx, c, "getDisplayState", withSession(id, map[string]any{"picture": false}), &display)
	if id == "" {
		if displayErr != nil {
			return displayErr
		}
		id = display.SessionID
	}
	var answer struct{ Session sessionFacts }
	raw, err := ask(ctx, c, "getSessionStatus", map[string]any{"sessionId": id}, &answer)
	if err != nil {
		return err
	}
	if a.json {
		out := map[string]any{"session": field(raw, "session"), "display": shown}
		if displayErr != nil {
			out["display"], out["error"] = nil, problemOf(displayErr)
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
		a.Facts([]term.Fact{{Name: "display", Lead: term.Cell{Text: problemOf(displayErr).Message}}})
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
		ValidArgsFunction: a.complete(sessionIDs),
		Args:              cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.summarized(cmd.Context(), "closeSession", withSession(first(args), map[string]any{}))
		},
	}
}

// summarized calls a tool and prints its summary.
func (a *app) summarized(ctx context.Context, tool string, args map[string]any) error {
	var answer struct{ Summary string }
	return a.oneCall(ctx, tool, args, &answer, func() { a.Say("%s", answer.Summary) })
}

// oneCall calls a tool, decodes its result into into and prints it.
func (a *app) oneCall(ctx context.Context, tool string, args map[string]any, into any, say func()) error {
	return a.connected(ctx, func(c *client.Client) error {
		raw, err := ask(ctx, c, tool, args, into)
		if err != nil {
			return err
		}
		return a.print(raw, say)
	})
}

// absolute makes a path absolute, because the daemon has a different working directory.
func absolute(path string) (string, error) {
	full, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("find %s: %w", path, err)
	}
	return full, nil
}
