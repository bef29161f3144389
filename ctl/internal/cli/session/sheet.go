package session

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/ctl/internal/client"
)

func (p *program) sheet() *cobra.Command {
	return &cobra.Command{
		Use: "sheet [ID] FILE", Short: "Write a PNG file of the panel on every device model",
		ValidArgsFunction: p.Complete(IDs),
		Long:              "The file must not exist yet. Lists content that does not fit a model.",
		Args:              cobra.RangeArgs(1, 2),
		RunE: p.RunWithClient(func(ctx context.Context, c *client.Client, args []string) error {
			return p.writePicture(ctx, c, args, map[string]any{"models": []string{"all"}})
		}),
	}
}
