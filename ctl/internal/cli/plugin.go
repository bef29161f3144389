package cli

import (
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/ctl/internal/client"
	"github.com/service-dev/service/ctl/internal/command"
	"github.com/service-dev/service/ctl/internal/term"
	"github.com/service-dev/service/proto/control"
)

func (a *app) plugin() *cobra.Command {
	return command.Group("plugin", "The daemon's adapters",
		"Adapters are programs that connect the daemon to a backend or to glasses. You can add your own for glasses.",
		a.pluginAdd(), a.pluginRemove(),
		command.Query(a.Program, "list", "List the adapters with their state", "", (*client.Client).Plugins,
			func(list []client.Plugin) any { return control.Plugins{Plugins: list} }, a.showPlugins))
}

var pluginSeverity = map[string]term.Severity{"running": term.Good, "starting": term.Good, "backoff": term.Warning,
	"refused": term.Bad}

func (a *app) showPlugins(list []client.Plugin) {
	now := time.Now()
	rows := make([][]term.Cell, 0, len(list))
	for _, p := range list {
		pid := "-"
		if p.PID > 0 {
			pid = strconv.Itoa(p.PID)
		}
		rows = append(rows, []term.Cell{
			{Text: p.Name}, {Text: p.State, Severity: pluginSeverity[p.State]}, {Text: pluginUptime(p, now)},
			{Text: pid},
			{Text: term.Dash(p.Version)}, {Text: strconv.Itoa(p.Restarts)}, {Text: pluginLastCrash(p, now)},
		})
	}
	a.Grid([]string{"ADAPTER", "STATE", "UP", "PID", "VERSION", "RESTARTS", "LAST CRASH"}, rows)
	for _, p := range list {
		if p.AddedMs > 0 {
			a.AddedAdapter(adapterOf(p), term.Since(p.AddedMs, now))
		}
	}
}

// pluginUptime returns how long the adapter has been running, or when it restarts.
func pluginUptime(p client.Plugin, now time.Time) string {
	switch p.State {
	case "running":
		return term.Span(max(0, now.Sub(time.UnixMilli(p.SinceMs))))
	case "backoff":
		return "again in " + term.Span(max(0, time.UnixMilli(p.ResumeMs).Sub(now)))
	}
	return "-"
}

// pluginLastCrash describes the last failure and how long ago it was.
func pluginLastCrash(p client.Plugin, now time.Time) string {
	if p.CrashedMs == 0 {
		return term.Dash(p.LastError)
	}
	return term.Since(p.CrashedMs, now) + ": " + p.LastError
}

// pluginNeed returns the action needed for an adapter that should run but does not, or "" if none is needed.
func pluginNeed(p client.Plugin) string {
	if p.AddedMs > 0 && p.State == "refused" {
		return "run `servicectl plugin add` with its path to approve it as it is now, or remove it with " +
			"`servicectl plugin remove " + p.Name + "`"
	}
	return pluginNeeds[p.State]
}

var pluginNeeds = map[string]string{
	"refused": "install the service again, so that its programs match plugins.sha256",
	"backoff": "nothing, it restarts by itself; see `servicectl daemon logs` for details",
}
