package server

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/backend/internal/config"
	"github.com/service-dev/service/backend/internal/credentials"
	"github.com/service-dev/service/backend/internal/db"
)

// rotateCredentialsKey encrypts stored credentials with the first key of the key file.
func rotateCredentialsKey() *cobra.Command {
	return &cobra.Command{
		Use: "rotate-credentials-key", Short: "Encrypt credentials with the first key in the key file", Args: cobra.NoArgs,
		Long: `Encrypt stored credentials with the first key in the key file.

Write the new key as the first line of the file, keep the old ones below it, restart every server that uses the file,
then run this. It can be run again at any time, even after an interruption and while servers run.
Stored credentials that cannot be decrypted are listed and not changed.`,
		RunE: configured(func(cmd *cobra.Command, c config.Config, _ []string) error {
			keys, err := credentials.ParseKeys(c.CredentialsKeys)
			if err != nil {
				return fmt.Errorf("%s: %w", c.CredentialsFrom, err)
			}
			if keys.Empty() {
				return fmt.Errorf("%w: set the key file with --credentials-key-file", credentials.ErrNotConfigured)
			}
			return withDatabase(cmd, c, func(d *db.DB) error {
				return rotate(cmd, credentials.New(credentials.Options{Store: credentials.NewStore(d), Keys: keys,
					Log: slog.New(slog.DiscardHandler)}),
					keys)
			})
		}),
	}
}

func rotate(cmd *cobra.Command, service *credentials.Service, keys credentials.Keys) error {
	n, err := service.Rewrap(cmd.Context())
	fmt.Fprintf(cmd.OutOrStdout(), "rewrapped %d, the current key is %s\n", n, keys.IDs()[0])
	var damaged *credentials.DamagedError
	if errors.As(err, &damaged) {
		for _, c := range damaged.Credentials {
			fmt.Fprintf(cmd.OutOrStdout(), "cannot be decrypted: %s of project %s, account %s, key %s\n", c.Provider, c.Project,
				c.AccountID, c.KeyID)
		}
	}
	if err != nil {
		return err
	}
	unused, err := service.Removable(cmd.Context())
	if err != nil {
		return err
	}
	if len(unused) == 0 {
		fmt.Fprintln(cmd.OutOrStdout(), "nothing can be removed from the key file")
		return nil
	}
	// The output also names keys by their line number, because a key does not show its ID.
	fmt.Fprintf(cmd.OutOrStdout(), "may be removed from the key file once every server has been restarted with it: %s\n",
		strings.Join(described(keys, unused), ", "))
	return nil
}

// described names keys by their ID and line number in the key file.
func described(keys credentials.Keys, ids []string) []string {
	var all []string
	for i, id := range keys.IDs() {
		for _, one := range ids {
			if one == id {
				all = append(all, fmt.Sprintf("key %d (%s)", i+1, id))
			}
		}
	}
	return all
}
