package cli

import (
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/ctl/internal/client"
	"github.com/service-dev/service/ctl/internal/command"
	"github.com/service-dev/service/ctl/internal/term"
)

func (a *app) plugin() *cobra.Command {
	return command.Group("plugin", "The daemon's adapters",
		"Adapters are programs that connect the daemon to a backend or to glasses. You can add your own for glasses.",
		a.pluginAdd(), a.pluginRemove(),
		command.Query(a.Program, "list", "List the adapters with their state", "", (*client.Client).Plugins,
			func(list []*client.Plugin) any { return map[string]any{"plugins": pluginsJSON(list)} }, a.showPlugins))
}

func pluginsJSON(list []*client.Plugin) []map[string]any {
	out := make([]map[string]any, 0, len(list))
	for _, p := range list {
		out = append(out, map[string]any{
			"name": p.GetName(), "path": p.GetPath(), "state": p.GetState(), "pid": p.GetPid(), "version": p.GetVersion(),
			"restarts": p.GetRestarts(), "lastError": p.GetLastError(), "verified": p.GetVerified(),
			"sinceMs": p.GetSinceMs(), "crashedMs": p.GetCrashedMs(), "resumeMs": p.GetResumeMs(),
			"addedMs": p.GetAddedMs(), "sha256": p.GetSha256(), "owner": p.GetOwner(), "title": p.GetTitle(),
		})
	}
	return out
}

var pluginSeverity = map[string]term.Severity{"running": term.Good, "starting": term.Good, "backoff": term.Warning,
	"refused": term.Bad}

func (a *app) showPlugins(list []*client.Plugin) {
	now := time.Now()
	rows := make([][]term.Cell, 0, len(list))
	for _, p := range list {
		pid := "-"
		if p.GetPid() > 0 {
			pid = strconv.FormatInt(p.GetPid(), 10)
		}
		rows = append(rows, []term.Cell{
			{Text: p.GetName()}, {Text: p.GetState(), Severity: pluginSeverity[p.GetState()]}, {Text: pluginUptime(p, now)},
			{Text: pid},
			{Text: term.Dash(p.GetVersion())}, {Text: strconv.Itoa(int(p.GetRestarts()))}, {Text: pluginLastCrash(p, now)},
		})
	}
	a.Grid([]string{"ADAPTER", "STATE", "UP", "PID", "VERSION", "RESTARTS", "LAST CRASH"}, rows)
	for _, p := range list {
		if p.GetAddedMs() > 0 {
			a.AddedAdapter(adapterOf(p), term.Since(p.GetAddedMs(), now))
		}
	}
}

// pluginUptime returns how long the adapter has been running, or when it restarts.
func pluginUptime(p *client.Plugin, now time.Time) string {
	switch p.GetState() {
	case "running":
		return term.Span(max(0, now.Sub(time.UnixMilli(p.GetSinceMs()))))
	case "backoff":
		return "again in " + term.Span(max(0, time.UnixMilli(p.GetResumeMs()).Sub(now)))
	}
	return "-"
}

// pluginLastCrash describes the last failure and how long ago it was.
func pluginLastCrash(p *client.Plugin, now time.Time) string {
	if p.GetCrashedMs() == 0 {
		return term.Dash(p.GetLastError())
	}
	return term.Since(p.GetCrashedMs(), now) + ": " + p.GetLastError()
}

// pluginNeed returns the action needed for an adapter that should run but does not, or "" if none is needed.
func pluginNeed(p *client.Plugin) string {
	if p.GetAddedMs() > 0 && p.GetState() == "refused" {
		return "run `servicectl plugin add` with its path to approve it as it is now, or remove it with " +
			"`servicectl plugin remove " + p.GetName() + "`"
	}
	return pluginNeeds[p.GetState()]
}

var pluginNeeds = map[string]string{
	"refused": "install the service again, so that its programs match plugins.sha256",
	"backoff": "nothing, it restarts by itself; see `servicectl daemon logs` for details",
}
