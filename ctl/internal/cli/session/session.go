// Package session contains the commands `servicectl session ...`, each in the file of its name. run_*.go implement
// `session run`, app.go starts and ends the app, and report.go prints the report of a scenario.
package session

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/ctl/internal/client"
	"github.com/service-dev/service/ctl/internal/command"
)

// program defines the commands.
type program struct{ *command.Program }

// Command returns the command "session" with its subcommands.
func Command(shared *command.Program) *cobra.Command {
	p := &program{shared}
	return command.Group("session", "Inspect, record and replay glasses sessions, and run scenarios",
		"Covers local sessions (startLocalSimulation) and, with a linked account, browser sessions.\n"+
			"Without an id, a command uses this directory's most recently used session.",
		p.list(), p.show(), p.log(), p.picture(), p.sheet(), p.close(),
		p.record(), p.replay(), p.run(), p.env(), p.schema())
}

// withSession adds a session ID to a call's arguments. Without an ID, the tool uses the latest session.
func withSession(id string, args map[string]any) map[string]any {
	if id != "" {
		args["sessionId"] = id
	}
	return args
}

// facts is a session in the result of getSessionStatus.
type facts struct {
	SessionID, State, Transport, Clock, Project, DeviceModel, SessionURL, AppEndpoint string
	CreatedAt                                                                         time.Time
	Apps, Pages                                                                       int
	NowMs, LastSeq                                                                    int64
}

// summarized calls a tool and prints its summary.
func (p *program) summarized(ctx context.Context, tool string, args map[string]any) error {
	var answer struct{ Summary string }
	return p.PrintTool(ctx, tool, args, &answer, func() { p.Say("%s", answer.Summary) })
}

// absolute makes a path absolute, because the daemon has a different working directory.
func absolute(path string) (string, error) {
	full, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("find %s: %w", path, err)
	}
	return full, nil
}

// IDs returns the IDs of the open sessions as completions. It ignores errors.
func IDs(ctx context.Context, c *client.Client) []string {
	var answer struct{ Sessions []facts }
	var ids []string
	_, _ = command.CallTool(ctx, c, "getSessionStatus", map[string]any{}, &answer)
	for _, s := range answer.Sessions {
		ids = append(ids, cobra.CompletionWithDesc(s.SessionID, s.Transport+", "+s.DeviceModel))
	}
	return ids
}
