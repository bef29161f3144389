package cli

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/ctl/internal/client"
	"github.com/service-dev/service/ctl/internal/term"
	"github.com/service-dev/service/internal/adapterfile"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/internal/rendezvous"
	"github.com/service-dev/service/proto/control"
)

func (a *app) pluginAdd() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "add PATH", Short: "Add an adapter for other glasses", Args: cobra.ExactArgs(1),
		Long: "" +
			"Shows the program's path, owner and SHA-256, and asks. Then the daemon starts it once to read its name, and\n" +
			"startLocalSimulation accepts that name as transport. It gets no token and no account, but it runs with your\n" +
			"rights: add only programs that you trust. If its file changes, it is not started until you add it again.\n" +
			"Exit code: 0 added, 1 refused or not confirmed, 2 it could not be added.",
		RunE: func(cmd *cobra.Command, args []string) error { return a.addPlugin(cmd.Context(), args[0], yes) },
	}
	yesFlag(cmd, &yes)
	return cmd
}

func yesFlag(cmd *cobra.Command, yes *bool) {
	cmd.Flags().BoolVar(yes, "yes", false, "do not ask")
}

func (a *app) addPlugin(ctx context.Context, path string, yes bool) error {
	file, err := adapterfile.Inspect(path)
	if err != nil {
		return &problem.Error{Code: problem.CodeAdapterUnreadable, Message: err.Error(),
			FixHint: "Pass the path of a program that you may read."}
	}
	shown := term.Adapter{Path: file.Path, Owner: file.Owner, SHA256: file.SHA256}
	if err := a.confirmAdapter(ctx, shown, term.AddAdapterQuestion, yes); err != nil {
		return err
	}
	return a.WithClient(ctx, func(c *client.Client) error {
		dir, err := rendezvous.Dir()
		if err != nil {
			return err
		}
		withdraw, err := adapterfile.Approve(dir, file)
		if err != nil {
			return &problem.Error{Code: "state_unwritable", Message: err.Error(),
				FixHint: "Check that you own the state directory and can write to it."}
		}
		defer withdraw()
		p, err := c.AddPlugin(ctx, file.Path, file.SHA256)
		if err != nil {
			return err
		}
		return a.printPlugin(p, a.AdapterAdded)
	})
}

// confirmAdapter shows an adapter and asks for confirmation, unless the user passed --yes.
func (a *app) confirmAdapter(ctx context.Context, shown term.Adapter, question string, yes bool) error {
	if !a.PrintsJSON || !yes {
		a.ShowAdapter(shown)
	}
	if yes {
		return nil
	}
	if !term.CanConfirm(a.In) {
		return &problem.Error{Code: problem.CodeNotConfirmed,
			Message: "this must be confirmed, and the input is not a terminal",
			FixHint: "Pass --yes."}
	}
	ok, err := a.Confirm(ctx, a.In, question)
	if err == nil && !ok {
		err = &problem.Error{Code: problem.CodeNotConfirmed, Message: "nothing was changed",
			FixHint: "Run the command again and answer y."}
	}
	return err
}

func (a *app) pluginRemove() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "remove NAME", Short: "Remove an adapter that was added", Args: cobra.ExactArgs(1),
		ValidArgsFunction: a.Complete(addedAdapters),
		Long:              "Shows the adapter's path, owner and SHA-256, and asks for confirmation. It does not delete the file.",
		RunE: a.RunWithClient(func(ctx context.Context, c *client.Client, args []string) error {
			return a.removePlugin(ctx, c, args[0], yes)
		}),
	}
	yesFlag(cmd, &yes)
	return cmd
}

func (a *app) removePlugin(ctx context.Context, c *client.Client, name string, yes bool) error {
	list, err := c.Plugins(ctx)
	i := slices.IndexFunc(list, func(p client.Plugin) bool { return p.Name == name && p.AddedMs > 0 })
	switch {
	case err != nil:
		return err
	case i < 0:
		return &problem.Error{Code: problem.CodeAdapterNotFound, Message: "no added adapter is named " + name,
			FixHint: "Pass a name that `servicectl plugin list` shows with an owner."}
	}
	if err = a.confirmAdapter(ctx, adapterOf(list[i]), term.RemoveAdapterQuestion, yes); err != nil {
		return err
	}
	p, err := c.RemovePlugin(ctx, name)
	if err == nil {
		err = a.printPlugin(p, a.AdapterRemoved)
	}
	return err
}

func adapterOf(p client.Plugin) term.Adapter {
	return term.Adapter{Name: p.Name, Title: p.Title, Path: p.Path, Owner: p.Owner,
		SHA256: p.SHA256}
}

// printPlugin prints one adapter.
func (a *app) printPlugin(p *client.Plugin, say func(term.Adapter)) error {
	return a.Print(control.PluginAnswer{Plugin: *p}, func() { say(adapterOf(*p)) })
}
