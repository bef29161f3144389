package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/ctl/internal/client"
	"github.com/service-dev/service/ctl/internal/command"
	"github.com/service-dev/service/ctl/internal/term"
)

// staleAfter is the age of the last check, in milliseconds, after which whoami makes the daemon check with the backend
// again.
const staleAfter = 60_000

type whoamiOutput struct {
	InstallID string `json:"installId"`
	// Linked is null if it is unknown.
	Linked    *bool   `json:"linked"`
	State     string  `json:"state"`
	AccountID *string `json:"accountId"`
	Tier      *string `json:"tier"`
	LinkedAt  *string `json:"linkedAt"`
	// ExpiresAt is null if the token never expires or no link exists.
	ExpiresAt          *string `json:"expiresAt"`
	BackendURL         *string `json:"backendUrl"`
	VerifiedAgeSeconds *int64  `json:"verifiedAgeSeconds"`
	Detail             string  `json:"detail,omitempty"`
}

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
	c, err := client.Open(ctx, client.Options{Program: a.Name, Lean: true})
	if err != nil {
		return err
	}
	// The connection stays open: the process is about to exit, and closing would take a tenth of the command's time.
	id, err := c.Whoami(ctx, refresh)
	if err == nil && !refresh && stale(id) {
		id, err = c.Whoami(ctx, true)
	}
	if err != nil {
		return err
	}
	if err := a.Print(whoamiJSON(id), func() { a.showWhoami(id) }); err != nil {
		return err
	}
	return verdict(id.GetVerdict())
}

// stale reports whether the link was never checked or was last checked too long ago.
func stale(id *client.Identity) bool {
	l := id.GetLink()
	return l.GetState() == "linked" && (l.GetVerifiedAgeMs() < 0 || l.GetVerifiedAgeMs() > staleAfter ||
		id.GetVerdict() == "unknown")
}

func verdict(v string) error {
	switch v {
	case "linked":
		return nil
	case "not_linked":
		return command.ExitNo
	}
	return command.ExitUnknown
}

func whoamiJSON(id *client.Identity) whoamiOutput {
	l := id.GetLink()
	out := whoamiOutput{InstallID: id.GetInstallId(), State: l.GetState(), ExpiresAt: l.ExpiresAt, Detail: l.GetDetail()}
	if v := id.GetVerdict(); v == "linked" || v == "not_linked" {
		linked := v == "linked"
		out.Linked = &linked
	}
	set(&out.AccountID, l.GetAccountId())
	set(&out.Tier, l.GetTier())
	set(&out.LinkedAt, l.GetLinkedAt())
	set(&out.BackendURL, l.GetBackendUrl())
	if ms := l.GetVerifiedAgeMs(); ms >= 0 && l.GetAccountId() != "" {
		seconds := ms / 1000
		out.VerifiedAgeSeconds = &seconds
	}
	return out
}

func set(to **string, value string) {
	if value != "" {
		*to = &value
	}
}

func (a *app) showWhoami(id *client.Identity) {
	l := id.GetLink()
	rows := [][]string{{"installId", id.GetInstallId()}, {"account", term.LinkState(l.GetState())}}
	if l.GetAccountId() != "" {
		expires := term.Never
		if l.ExpiresAt != nil {
			expires = l.GetExpiresAt()
		}
		rows = append(rows,
			[]string{"accountId", l.GetAccountId()},
			[]string{"tier", term.Dash(l.GetTier())},
			[]string{"authExpires", expires},
			[]string{"backend", term.BackendName(l.GetBackendUrl())},
			[]string{"checked", term.Ago(l.GetVerifiedAgeMs())})
	}
	a.Pairs(rows)
	if id.GetVerdict() == "unknown" {
		a.Remark("cannot tell whether the link is still valid: %s", term.Dash(l.GetDetail()))
		a.Next("run `%s whoami --refresh` when the backend can be reached", a.Name)
	} else if next := term.NextStep(l.GetState()); next != "" {
		if l.GetDetail() != "" {
			a.Remark("%s", l.GetDetail())
		}
		a.Next("%s", next)
	} else if l.GetDetail() != "" {
		a.Remark("%s", l.GetDetail())
	}
}
