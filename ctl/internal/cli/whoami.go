package cli

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/ctl/internal/client"
	"github.com/service-dev/service/ctl/internal/command"
	"github.com/service-dev/service/ctl/internal/term"
)

// staleAfter is the age of the latest check, in seconds, from which whoami makes the daemon ask the backend
// again.
const staleAfter = 60

func (a *app) whoami() *cobra.Command {
	var refresh bool
	cmd := command.New("whoami", "Show the install id and the linked account",
		"Shows installId, accountId, tier and when the authorisation expires, but never the token.\n"+
			"Exit code: 0 linked, 1 not linked, 2 linked but the backend cannot be reached.",
		func(ctx context.Context) error { return a.runWhoami(ctx, refresh) })
	cmd.Flags().BoolVar(&refresh, "refresh", false, "check with the backend even if the last check is recent")
	return cmd
}

func (a *app) runWhoami(ctx context.Context, refresh bool) error {
	c, err := client.Open(ctx, client.Options{Program: a.Name, AnyProtocol: true})
	if err != nil {
		return err
	}
	// The connection stays open, because the process is about to exit and closing would take a tenth of the
	// command's time.
	id, err := c.Whoami(ctx, refresh)
	if err == nil && !refresh && stale(id) {
		id, err = c.Whoami(ctx, true)
	}
	if err != nil {
		return err
	}
	if err := a.Print(id, func() { a.showWhoami(id) }); err != nil {
		return err
	}
	return verdict(id)
}

// stale reports whether the link was never checked or was last checked too long ago.
func stale(id *client.Identity) bool {
	age := id.VerifiedAgeSeconds
	return id.State == "linked" && (age == nil || *age >= staleAfter || id.Linked == nil)
}

func verdict(id *client.Identity) error {
	switch {
	case id.Linked == nil:
		return command.ExitUnknown
	case *id.Linked:
		return nil
	}
	return command.ExitNo
}

func (a *app) showWhoami(id *client.Identity) {
	rows := [][]string{{"installId", id.InstallID}, {"account", term.LinkState(id.State)}}
	if id.AccountID != nil {
		age := int64(-1)
		if id.VerifiedAgeSeconds != nil {
			age = *id.VerifiedAgeSeconds * 1000
		}
		rows = append(rows,
			[]string{"accountId", *id.AccountID},
			[]string{"tier", term.Dash(text(id.Tier))},
			[]string{"authExpires", cmp.Or(text(id.ExpiresAt), term.Never)},
			[]string{"backend", term.BackendName(text(id.BackendURL))},
			[]string{"checked", term.Ago(age)})
	}
	a.Pairs(rows)
	if id.Linked == nil {
		a.Remark("cannot tell whether the link is still valid: %s", term.Dash(id.Detail))
		a.Next("run `%s whoami --refresh` when the backend can be reached", a.Name)
		return
	}
	if id.Detail != "" {
		a.Remark("%s", id.Detail)
	}
	if next := term.NextStep(id.State); next != "" {
		a.Next("%s", next)
	}
}
