package server

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/backend/internal/config"
	"github.com/service-dev/service/backend/internal/db"
	"github.com/service-dev/service/backend/internal/secret"
)

// replaceKeyCommand replaces a key that was lost or leaked.
func replaceKeyCommand() *cobra.Command {
	return &cobra.Command{
		Use: "replace-key", Short: "Switch to the configured key; credentials made with the old key stop working",
		Args: cobra.NoArgs,
		Long: `Switch the database to the configured key.

Accounts, passwords and projects stay. Links, browser sessions, mailed links, project keys and session secrets made
with the former key stop working, and older lines of the trail can no longer be found by code, account or address.
Usage events are erased, because they could no longer be matched with their installs, neither to count them nor to
erase them on request. Stop every server first.`,
		RunE: configured(func(cmd *cobra.Command, c config.Config, _ []string) error {
			if len(c.HMACKey) == 0 {
				return ErrNoKey
			}
			return withDatabase(cmd, c, func(d *db.DB) error {
				changed, err := d.ReplaceKey(cmd.Context(), secret.NewHasher(c.HMACKey).Check())
				if err != nil {
					return err
				}
				says := "the database already uses this key"
				if changed {
					says = "the database uses this key from now on\nnext: start every server with it"
				}
				fmt.Fprintln(cmd.OutOrStdout(), says)
				return nil
			})
		}),
	}
}
