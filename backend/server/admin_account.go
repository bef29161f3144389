package server

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/config"
	"github.com/service-dev/service/backend/internal/secret"
	"github.com/service-dev/service/backend/internal/sqlstore"
)

// resetLinkCommand is for operators without a mail server: they hand the link over themselves.
func resetLinkCommand() *cobra.Command {
	return &cobra.Command{
		Use: "reset-link EMAIL", Short: "Print a link that sets a new password, once, within an hour; whoever has it has the account", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := config.Load(cmd.Flags())
			if err != nil {
				return err
			}
			return withStore(cmd, func(s *sqlstore.Store) error {
				// A link made with any other key is of no use at the server.
				if err := checkKey(cmd.Context(), s, c.HMACKey); err != nil {
					return err
				}
				accounts := account.NewService(s, secret.NewHasher(c.HMACKey), slog.New(slog.DiscardHandler), nil)
				accounts.SiteURL = c.SiteURL
				link, err := accounts.ResetLink(cmd.Context(), args[0], audit.Operator())
				if errors.Is(err, account.ErrNotFound) {
					return errors.New("no account has that e-mail address")
				}
				if err != nil {
					return err
				}
				fmt.Fprintln(cmd.OutOrStdout(), link)
				return nil
			})
		},
	}
}
