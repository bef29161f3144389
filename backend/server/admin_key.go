package server

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/backend/internal/config"
	"github.com/service-dev/service/backend/internal/secret"
	"github.com/service-dev/service/backend/internal/sqlstore"
)

// replaceKeyCommand is for a key that was lost or leaked.
func replaceKeyCommand() *cobra.Command {
	return &cobra.Command{
		Use: "replace-key", Short: "Switch to the configured key; what was made with the old key stops working",
		Args: cobra.NoArgs,
		Long: `Let the database be served with the key that is set now.

Accounts, passwords and projects stay. Links, browser sessions, mailed links, project keys and sessions' secrets that
were made with the former key are not recognised any more, and the trail's older lines cannot be asked for by name.
Usage events are erased, since whose they are could not be told any more, neither to count them nor to erase them when
somebody asks. Stop every server first.`,
		RunE: configured(func(cmd *cobra.Command, c config.Config, _ []string) error {
			if len(c.HMACKey) == 0 {
				return ErrNoKey
			}
			return withStore(cmd, c, func(s *sqlstore.Store) error {
				changed, err := s.ReplaceKey(cmd.Context(), secret.NewHasher(c.HMACKey).Check())
				if err != nil {
					return err
				}
				says := "the database is served with this key already"
				if changed {
					says = "the database is served with this key from now on\nnext: start every server with it"
				}
				fmt.Fprintln(cmd.OutOrStdout(), says)
				return nil
			})
		}),
	}
}
