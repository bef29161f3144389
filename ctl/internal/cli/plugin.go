package cli

import (
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/ctl/internal/client"
	"github.com/service-dev/service/ctl/internal/term"
)

func (a *app) plugin() *cobra.Command {
	cmd := &cobra.Command{Use: "plugin", Short: "The daemon's adapters", Args: cobra.NoArgs, RunE: help}
	cmd.AddCommand(&cobra.Command{
		Use: "list", Short: "List the adapters with their state", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.open(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			list, err := c.Plugins(cmd.Context())
			if err != nil {
				return err
			}
			if a.json {
				return a.JSON(map[string]any{"plugins": pluginsJSON(list)})
			}
			a.showPlugins(list)
			return nil
		},
	})
	return cmd
}

func pluginsJSON(list []*client.Plugin) []map[string]any {
	out := make([]map[string]any, 0, len(list))
	for _, p := range list {
		out = append(out, map[string]any{
			"name": p.GetName(), "path": p.GetPath(), "state": p.GetState(), "pid": p.GetPid(), "version": p.GetVersion(),
			"restarts": p.GetRestarts(), "lastError": p.GetLastError(), "verified": p.GetVerified(),
			"sinceMs": p.GetSinceMs(), "crashedMs": p.GetCrashedMs(), "resumeMs": p.GetResumeMs(),
		})
	}
	return out
}

var pluginMood = map[string]term.Mood{"running": term.Good, "starting": term.Good, "backoff": term.Doubtful, "refused": term.Bad}

func (a *app) showPlugins(list []*client.Plugin) {
	now := time.Now()
	rows := make([][]term.Cell, 0, len(list))
	for _, p := range list {
		pid := "-"
		if p.GetPid() > 0 {
			pid = strconv.FormatInt(p.GetPid(), 10)
		}
		rows = append(rows, []term.Cell{
			{Text: p.GetName()}, {Text: p.GetState(), Mood: pluginMood[p.GetState()]}, {Text: pluginUp(p, now)}, {Text: pid},
			{Text: term.Dash(p.GetVersion())}, {Text: strconv.Itoa(int(p.GetRestarts()))}, {Text: pluginTrouble(p, now)},
		})
	}
	a.Grid([]string{"ADAPTER", "STATE", "UP", "PID", "VERSION", "RESTARTS", "LAST CRASH"}, rows)
}

// pluginUp is how long it has run, or when it starts again.
func pluginUp(p *client.Plugin, now time.Time) string {
	switch p.GetState() {
	case "running":
		return term.Span(max(0, now.Sub(time.UnixMilli(p.GetSinceMs()))))
	case "backoff":
		return "again in " + term.Span(max(0, time.UnixMilli(p.GetResumeMs()).Sub(now)))
	}
	return "-"
}

// pluginTrouble is what went wrong last, and when.
func pluginTrouble(p *client.Plugin, now time.Time) string {
	if p.GetCrashedMs() == 0 {
		return term.Dash(p.GetLastError())
	}
	return term.Since(p.GetCrashedMs(), now) + ": " + p.GetLastError()
}

// pluginNeed is what to do about an adapter that does not run though it should; empty when all is well.
func pluginNeed(p *client.Plugin) string {
	switch p.GetState() {
	case "refused":
		return "install the service again, so that its programs and plugins.sha256 belong together"
	case "backoff":
		return "nothing, it starts again by itself; `servicectl daemon logs` tells more"
	}
	return ""
}
