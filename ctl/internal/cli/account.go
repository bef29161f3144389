package cli

import (
	"github.com/spf13/cobra"

	"github.com/service-dev/service/ctl/internal/term"
)

func (a *app) logout() *cobra.Command {
	return &cobra.Command{
		Use: "logout", Short: "Forget the linked account on this machine", Args: cobra.NoArgs,
		Long: "Deletes auth.json and no other file; the install id stays. Then it asks the backend to revoke the token, for at most 3 s.\n" +
			"It succeeds when there was no link, too.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.open(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			r, err := c.Logout(cmd.Context())
			if err != nil {
				return err
			}
			if a.json {
				var revokeURL *string
				set(&revokeURL, r.GetRevokeUrl())
				return a.JSON(map[string]any{
					"wasLinked": r.GetWasLinked(), "authFile": r.GetAuthFile(), "revoked": r.GetRevoked(), "revokeUrl": revokeURL,
				})
			}
			a.LoggedOut(r.GetWasLinked(), r.GetAuthFile(), r.GetRevoked(), r.GetRevokeUrl())
			return nil
		},
	}
}

func (a *app) acceptPrivacy() *cobra.Command {
	return a.decide("accept-privacy", "accepted", "Agree to usage telemetry being uploaded")
}

func (a *app) declinePrivacy() *cobra.Command {
	return a.decide("decline-privacy", "declined", "Stop the upload of usage telemetry; it is still written locally")
}

func (a *app) decide(name, state, short string) *cobra.Command {
	return &cobra.Command{
		Use: name, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.open(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			r, err := c.SetConsent(cmd.Context(), state)
			if err != nil {
				return err
			}
			consent := r.GetConsent()
			if a.json {
				return a.JSON(map[string]any{
					"consent": consent.GetState(), "uploadAllowed": consent.GetUploadAllowed(),
					"decidedBy": consent.GetDecidedBy(), "file": r.GetFile(),
				})
			}
			a.Consent(term.Consent{State: consent.GetState(), Upload: consent.GetUploadAllowed(), By: consent.GetDecidedBy(), File: r.GetFile()})
			return nil
		},
	}
}
