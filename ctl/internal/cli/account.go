package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/ctl/internal/client"
	"github.com/service-dev/service/ctl/internal/command"
	"github.com/service-dev/service/ctl/internal/term"
)

func (a *app) logout() *cobra.Command {
	return command.Query(a.Program, "logout", "Forget the linked account on this machine",
		"Deletes only auth.json; the install id stays. Then it asks the backend to revoke the token\n"+
			"and waits at most 3 s. It also succeeds if there was no link.",
		(*client.Client).Logout,
		func(r *client.LoggedOut) any {
			var revokeURL *string
			set(&revokeURL, r.GetRevokeUrl())
			return map[string]any{
				"wasLinked": r.GetWasLinked(), "authFile": r.GetAuthFile(), "revoked": r.GetRevoked(), "revokeUrl": revokeURL,
			}
		},
		func(r *client.LoggedOut) {
			a.LoggedOut(r.GetWasLinked(), r.GetAuthFile(), r.GetRevoked(), r.GetRevokeUrl())
		})
}

func (a *app) acceptPrivacy() *cobra.Command {
	return a.decide("accept-privacy", "accepted", "Agree to usage telemetry being uploaded")
}

func (a *app) declinePrivacy() *cobra.Command {
	return a.decide("decline-privacy", "declined", "Stop uploading usage telemetry; it is still recorded locally")
}

func (a *app) decide(name, state, short string) *cobra.Command {
	set := func(c *client.Client, ctx context.Context) (*client.Decision, error) { return c.SetConsent(ctx, state) }
	return command.Query(a.Program, name, short, "", set, func(r *client.Decision) any {
		object := consentJSON(r.GetConsent())
		object["consent"], object["file"] = r.GetConsent().GetState(), r.GetFile()
		return object
	}, func(r *client.Decision) {
		consent := consentOf(r.GetConsent())
		consent.File = r.GetFile()
		a.Consent(consent)
	})
}

func consentJSON(c *client.Consent) map[string]any {
	return map[string]any{"uploadAllowed": c.GetUploadAllowed(), "decidedBy": c.GetDecidedBy()}
}

func consentOf(c *client.Consent) term.Consent {
	return term.Consent{State: c.GetState(), Upload: c.GetUploadAllowed(), By: c.GetDecidedBy()}
}
