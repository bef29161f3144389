package server

import (
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/config"
	"github.com/service-dev/service/backend/internal/db"
	"github.com/service-dev/service/backend/internal/secret"
)

// resetLinkCommand is for operators without a mail server, who send the link to the user themselves.
func resetLinkCommand() *cobra.Command {
	return &cobra.Command{
		Use: "reset-link EMAIL", Short: "Print a one-time link to set a new password, valid for an hour; keep it " +
			"secret", Args: cobra.ExactArgs(1),
		RunE: configured(func(cmd *cobra.Command, c config.Config, args []string) error {
			return withDatabase(cmd, c, func(d *db.DB) error {
				// The server rejects a link created with another key.
				if err := checkKey(cmd.Context(), d, c.HMACKey); err != nil {
					return err
				}
				accounts := account.New(account.Options{Store: account.NewStore(d),
					Hasher: secret.NewHasher(c.HMACKey), Log: slog.New(slog.DiscardHandler)})
				accounts.SiteURL = c.SiteURL
				link, err := accounts.ResetLink(cmd.Context(), args[0], audit.Operator())
				if err = explain(err, account.ErrNotFound, "no account has that e-mail address"); err != nil {
					return err
				}
				fmt.Fprintln(cmd.OutOrStdout(), link)
				return nil
			})
		}),
	}
}
