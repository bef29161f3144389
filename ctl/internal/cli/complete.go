package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/ctl/internal/client"
)

// completionTime is how long a shell waits for completions.
const completionTime = 2 * time.Second

// complete completes the first argument with what a running daemon knows. It starts no daemon, because pressing Tab
// must have no effect, and reports no errors, because a shell shows none.
func (a *app) complete(names func(context.Context, *client.Client) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
		defer cancel()
		c, err := client.Open(ctx, client.Options{Program: a.name, Running: true})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer c.Close()
		return names(ctx, c), cobra.ShellCompDirectiveNoFileComp
	}
}

func sessionIDs(ctx context.Context, c *client.Client) []string {
	var answer struct{ Sessions []sessionFacts }
	var ids []string
	_, _ = ask(ctx, c, "getSessionStatus", map[string]any{}, &answer)
	for _, s := range answer.Sessions {
		ids = append(ids, cobra.CompletionWithDesc(s.SessionID, s.Transport+", "+s.DeviceModel))
	}
	return ids
}

func toolNames(ctx context.Context, c *client.Client) []string {
	var names []string
	tools, _ := c.Tools(ctx)
	for _, t := range tools {
		names = append(names, cobra.CompletionWithDesc(t.GetName(), t.GetTitle()))
	}
	return names
}

func fontNames(ctx context.Context, c *client.Client) []string {
	var names []string
	fonts, _ := c.Fonts(ctx)
	for _, f := range fonts {
		names = append(names, f.GetName())
	}
	return names
}

func addedAdapters(ctx context.Context, c *client.Client) []string {
	var names []string
	plugins, _ := c.Plugins(ctx)
	for _, p := range plugins {
		if p.GetAddedMs() > 0 {
			names = append(names, p.GetName())
		}
	}
	return names
}
