package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/ctl/internal/client"
	"github.com/service-dev/service/proto/glasses/scenario"
)

// sessionVariables is the part of a session tool's answer that session env prints.
type sessionVariables struct {
	SessionID   string            `json:"sessionId"`
	Environment map[string]string `json:"environment"`
}

func (a *app) sessionEnv() *cobra.Command {
	return &cobra.Command{
		Use: "env [ID]", Short: "Print the variables with which an app finds the session", Args: cobra.MaximumNArgs(1),
		Long: "Prints shell assignments of SERVICE_GLASSES_URL, SERVICE_GLASSES_SECRET_FILE and SERVICE_GLASSES_TRANSPORT:\n" +
			"the secret itself stays in its file. It opens no session and starts no app; `session run -- COMMAND` does both.",
		Example: "  eval \"$(servicectl session env)\" && node app.js",
		RunE: a.connectedRun(func(ctx context.Context, c *client.Client, args []string) error {
			found, err := variablesOf(ctx, c, first(args))
			if err != nil {
				return err
			}
			return a.print(found, func() {
				for _, name := range slices.Sorted(maps.Keys(found.Environment)) {
					a.Say("%s", assignment(runtime.GOOS, name, found.Environment[name]))
				}
			})
		}),
	}
}

// variablesOf calls the tool that opened a session once more, which returns the open session.
func variablesOf(ctx context.Context, c *client.Client, id string) (found sessionVariables, err error) {
	var latest struct{ SessionID string }
	if _, err := ask(ctx, c, "getEventLog", withSession(id, map[string]any{"limit": 1}), &latest); err != nil {
		return found, err
	}
	var status struct {
		Session struct{ Transport, Clock, Project, Platform, State string }
	}
	if _, err := ask(ctx, c, "getSessionStatus", withSession(latest.SessionID, map[string]any{}), &status); err != nil {
		return found, err
	}
	s := status.Session
	tool, args := "startLocalSimulation", map[string]any{"project": s.Project, "clock": s.Clock}
	if s.Transport != "local" {
		tool, args = "createSimulatorSession", map[string]any{"project": s.Project, "openBrowser": false}
		if s.Platform != "" {
			args["platform"] = s.Platform
		}
	}
	if s.State != "open" {
		return found, &client.Error{Code: "not_found", Message: "session " + latest.SessionID + " is closed",
			FixHint: "open one with startLocalSimulation, or let `servicectl session run -- COMMAND` do it"}
	}
	if _, err := ask(ctx, c, tool, args, &found); err != nil {
		return found, err
	}
	if found.SessionID != latest.SessionID {
		return found, &client.Error{Code: "not_found",
			Message: fmt.Sprintf("session %s is not the one that apps of %s attach to: that is %s", latest.SessionID, s.Project,
				found.SessionID),
			FixHint: "pass that id, or close the other session"}
	}
	return found, nil
}

// assignment sets an environment variable in the usual shell of a system.
func assignment(goos, name, value string) string {
	if goos == "windows" {
		return "$env:" + name + " = '" + strings.ReplaceAll(value, "'", "''") + "'"
	}
	return "export " + name + "='" + strings.ReplaceAll(value, "'", `'\''`) + "'"
}

func (a *app) sessionSchema() *cobra.Command {
	return command("schema", "Print the JSON Schema of scenario files, for editors", "", func(context.Context) error {
		schema := json.RawMessage(scenario.Schema())
		return a.print(schema, func() { a.Say("%s", strings.TrimSpace(string(schema))) })
	})
}
