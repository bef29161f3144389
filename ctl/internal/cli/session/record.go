package session

import "github.com/spf13/cobra"

func (p *program) record() *cobra.Command {
	var name, session string
	var since int64
	cmd := &cobra.Command{
		Use: "record [ID] DIR", Short: "Record a session in a folder, as a test",
		ValidArgsFunction: p.Complete(IDs),
		Args:              cobra.RangeArgs(1, 2),
		Long: "The folder must be new, empty or an older recording. Run it against a later build of the app with `session " +
			"run DIR`.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 {
				session, args = args[0], args[1:]
			}
			dir, err := absolute(args[0])
			if err != nil {
				return err
			}
			call := withSession(session, map[string]any{"dir": dir, "since": since})
			if name != "" {
				call["name"] = name
			}
			return p.summarized(cmd.Context(), "recordSession", call)
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "name of the recording in reports (default: the folder's name)")
	cmd.Flags().Int64Var(&since, "since", 0, "record only rows after this one of the log")
	return cmd
}
