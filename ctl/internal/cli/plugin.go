package cli

import (
	"strconv"

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
		})
	}
	return out
}

func (a *app) showPlugins(list []*client.Plugin) {
	rows := [][]string{{"ADAPTER", "STATE", "PID", "RESTARTS", "VERIFIED", "LAST ERROR"}}
	for _, p := range list {
		pid := "-"
		if p.GetPid() > 0 {
			pid = strconv.FormatInt(p.GetPid(), 10)
		}
		rows = append(rows, []string{p.GetName(), p.GetState(), pid, strconv.Itoa(int(p.GetRestarts())), strconv.FormatBool(p.GetVerified()), term.Dash(p.GetLastError())})
	}
	a.Table(rows)
}
