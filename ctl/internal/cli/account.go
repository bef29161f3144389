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
		func(r *client.LoggedOut) any { return r },
		func(r *client.LoggedOut) { a.LoggedOut(r.WasLinked, r.AuthFile, r.Revoked, text(r.RevokeURL)) })
}

func (a *app) acceptPrivacy() *cobra.Command {
	return a.decide("accept-privacy", "accepted", "Agree to usage telemetry being uploaded")
}

func (a *app) declinePrivacy() *cobra.Command {
	return a.decide("decline-privacy", "declined", "Stop uploading usage telemetry; it is still recorded locally")
}

func (a *app) decide(name, state, short string) *cobra.Command {
	set := func(c *client.Client, ctx context.Context) (*client.Decision, error) { return c.SetConsent(ctx, state) }
	return command.Query(a.Program, name, short, "", set, func(r *client.Decision) any { return r },
		func(r *client.Decision) {
			a.Consent(term.Consent{State: r.Consent, Upload: r.UploadAllowed, By: r.DecidedBy, File: r.File})
		})
}

// text returns the text of an optional field, "" if it is absent.
func text(optional *string) string {
	if optional == nil {
		return ""
	}
	return *optional
}
