package session

import (
	"github.com/spf13/cobra"

	"github.com/service-dev/service/ctl/internal/command"
)

func (p *program) close() *cobra.Command {
	return &cobra.Command{
		Use: "close [ID]", Short: "Close a session for everyone, and delete a local session's log",
		ValidArgsFunction: p.Complete(IDs),
		Args:              cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.summarized(cmd.Context(), "closeSession", withSession(command.FirstArg(args), map[string]any{}))
		},
	}
}
