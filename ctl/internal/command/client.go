package command

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/ctl/internal/client"
)

// OpenClient connects to the daemon and starts it if necessary. The caller must close the client with CloseClient.
func (p *Program) OpenClient(ctx context.Context) (*client.Client, error) {
	return client.Open(ctx, client.Options{Program: p.Name, PrintsNotice: true})
}

// CloseClient closes a client and prints the notice that the client received, if any.
func (p *Program) CloseClient(c *client.Client) {
	c.Close()
	p.Notice(c.Notice())
}

// WithClient runs act with a connection to the daemon, which it starts if necessary.
func (p *Program) WithClient(ctx context.Context, act func(*client.Client) error) error {
	c, err := p.OpenClient(ctx)
	if err != nil {
		return err
	}
	defer p.CloseClient(c)
	return act(c)
}

// RunWithClient returns the RunE of a command that takes arguments and needs the daemon.
func (p *Program) RunWithClient(
	act func(context.Context, *client.Client, []string) error,
) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		return p.WithClient(cmd.Context(), func(c *client.Client) error { return act(cmd.Context(), c, args) })
	}
}

// Query returns a command that makes one request to the daemon and prints the response.
func Query[T any](p *Program, use, short, long string, ask func(*client.Client, context.Context) (T, error),
	object func(T) any, say func(T)) *cobra.Command {
	return New(use, short, long, func(ctx context.Context) error {
		return p.WithClient(ctx, func(c *client.Client) error {
			answer, err := ask(c, ctx)
			if err != nil {
				return err
			}
			return p.Print(object(answer), func() { say(answer) })
		})
	})
}

// completionTime is how long a shell waits for completions.
const completionTime = 2 * time.Second

// Complete completes the first argument with names from a running daemon. It starts no daemon, because pressing Tab
// must not have side effects. It ignores errors, because a shell does not show them.
func (p *Program) Complete(names func(context.Context, *client.Client) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
		defer cancel()
		c, err := client.Open(ctx, client.Options{Program: p.Name, Running: true})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer c.Close()
		return names(ctx, c), cobra.ShellCompDirectiveNoFileComp
	}
}
