package session

import (
	"context"
	"maps"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/ctl/internal/client"
	"github.com/service-dev/service/ctl/internal/command"
	"github.com/service-dev/service/internal/problem"
)

// variables is the output of session env.
type variables struct {
	SessionID   string            `json:"sessionId"`
	Environment map[string]string `json:"environment"`
}

func (p *program) env() *cobra.Command {
	return &cobra.Command{
		Use: "env [ID]", Short: "Print the variables that an app needs to attach to the session", Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: p.Complete(IDs),
		Long: "Prints shell assignments of SERVICE_GLASSES_URL, SERVICE_GLASSES_SECRET_FILE and SERVICE_GLASSES_TRANSPORT:\n" +
			"the secret itself stays in its file. It opens no session and starts no app; `session run -- COMMAND` does both.",
		RunE: p.RunWithClient(func(ctx context.Context, c *client.Client, args []string) error {
			found, err := variablesOf(ctx, c, command.FirstArg(args))
			if err != nil {
				return err
			}
			return p.Print(found, func() {
				for _, name := range slices.Sorted(maps.Keys(found.Environment)) {
					p.Row("%s", assignment(runtime.GOOS, name, found.Environment[name]))
				}
			})
		}),
	}
}

// variablesOf returns the environment variables for the apps of a session, by default the most recently
// used session.
func variablesOf(ctx context.Context, c *client.Client, id string) (found variables, err error) {
	if id == "" {
		var latest struct{ SessionID string }
		if _, err := command.CallTool(ctx, c, "getEventLog", map[string]any{"limit": 1}, &latest); err != nil {
			return found, err
		}
		id = latest.SessionID
	}
	var status struct {
		Session     struct{ State string }
		Environment map[string]string
	}
	if _, err := command.CallTool(ctx, c, "getSessionStatus", withSession(id, map[string]any{}), &status); err != nil {
		return found, err
	}
	switch {
	case status.Session.State != "open":
		return found, &problem.Error{Code: "not_found", Message: "session " + id + " is closed",
			FixHint: "Open one with startLocalSimulation, or let `servicectl session run -- COMMAND` do it."}
	case len(status.Environment) == 0:
		return found, &problem.Error{Code: "not_found", Message: "this machine has no secret for session " + id,
			FixHint: "Call createSimulatorSession on this machine, which stores one."}
	}
	return variables{SessionID: id, Environment: status.Environment}, nil
}

// assignment formats a variable assignment for the usual shell of an operating system.
func assignment(goos, name, value string) string {
	if goos == "windows" {
		return "$env:" + name + " = '" + strings.ReplaceAll(value, "'", "''") + "'"
	}
	return "export " + name + "='" + strings.ReplaceAll(value, "'", `'\''`) + "'"
}
