package cli

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/ctl/internal/cli/session"
	"github.com/service-dev/service/ctl/internal/client"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/internal/rendezvous"
)

func toolNames(ctx context.Context, c *client.Client) []string {
	var names []string
	tools, _ := c.Tools(ctx)
	for _, t := range tools {
		names = append(names, cobra.CompletionWithDesc(t.Name, t.Title))
	}
	return names
}

func fontNames(ctx context.Context, c *client.Client) []string {
	var names []string
	fonts, _ := c.Fonts(ctx)
	for _, f := range fonts {
		names = append(names, f.Name)
	}
	return names
}

func addedAdapters(ctx context.Context, c *client.Client) []string {
	var names []string
	plugins, _ := c.Plugins(ctx)
	for _, p := range plugins {
		if p.AddedMs > 0 {
			names = append(names, p.Name)
		}
	}
	return names
}

// knownGlasses returns the names of the glasses that this computer remembers.
func knownGlasses(ctx context.Context, c *client.Client) []string {
	var names []string
	list, _ := c.Glasses(ctx, 0)
	for _, g := range list {
		names = append(names, cobra.CompletionWithDesc(g.Name, g.DeviceModel))
	}
	return names
}

func transports(ctx context.Context, c *client.Client) []string {
	return append(addedAdapters(ctx, c), "localsim", "realdevice")
}

// fixed completes with a fixed list of values.
func fixed(values ...string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			values = nil
		}
		return values, cobra.ShellCompDirectiveNoFileComp
	}
}

// agentNames completes with the coding agents that are not yet on the command line.
func agentNames(_ *cobra.Command, named []string, _ string) ([]string, cobra.ShellCompDirective) {
	var names []string
	all, _, _ := known()
	for _, g := range all {
		if !slices.Contains(named, g.ID) {
			names = append(names, cobra.CompletionWithDesc(g.ID, g.Name))
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// models completes with the known device models and the values in more. It builds the list only when the user presses
// Tab, because every run registers the completion.
func models(more ...string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
		var names []string
		for _, m := range glasses.Models() {
			names = append(names, cobra.CompletionWithDesc(m.ID, m.Name))
		}
		return fixed(append(names, more...)...)(cmd, args, start)
	}
}

// completeFlags registers completions for flags by name, in all commands below root.
func (a *app) completeFlags(root *cobra.Command) {
	completeEach(root, map[string]cobra.CompletionFunc{
		"model": valueOf(models()), "models": valueOf(models("all")),
		"chip": valueOf(fixed(glasses.Chips()...)), "clock": valueOf(fixed("virtual", "real")),
		"via": valueOf(fixed("auto", "bluez", "browser")), "range": valueOf(fixed("24h", "7d", "30d", "90d")),
		"tools":   valueOf(fixed(rendezvous.ToolsetLocal)),
		"session": valueOf(a.Complete(session.IDs)), "transport": valueOf(a.Complete(transports)),
	})
}

func completeEach(cmd *cobra.Command, values map[string]cobra.CompletionFunc) {
	for name, complete := range values {
		if cmd.Flags().Lookup(name) != nil {
			_ = cmd.RegisterFlagCompletionFunc(name, complete) // fails only if it was already called for this flag
		}
	}
	for _, child := range cmd.Commands() {
		completeEach(child, values)
	}
}

// valueOf completes the value of a flag and ignores the command's arguments.
func valueOf(complete cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, start string) ([]string, cobra.ShellCompDirective) {
		return complete(cmd, nil, start)
	}
}
