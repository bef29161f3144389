package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/link"
)

// trailJSON is one line of the trail. Code, link, account and address are keyed hashes; equal hashes mean equal
// values.
type trailJSON struct {
	At      string `json:"at"`
	Action  string `json:"action"`
	Code    string `json:"code"`
	Link    string `json:"link"`
	Account string `json:"account"`
	Address string `json:"address"`
}

func trailCommand() *cobra.Command {
	var asked link.Asked
	var who string
	trail := &cobra.Command{
		Use: "trail", Short: "Show what happened to links and their codes in the last 90 days", Args: cobra.NoArgs,
		Long: `Show what happened to links and their codes in the last 90 days, newest first.

The trail contains times and keyed hashes. The values you pass are hashed with the server's key before the search. Equal
hashes in the listing mean the same code, link, account or address.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := netip.ParseAddr(asked.Address); asked.Address != "" && err != nil {
				return errors.New("--address is not a network address")
			}
			if asked.Limit < 1 || asked.Limit > audit.MaxTrailListed {
				return fmt.Errorf("--limit must be 1 to %d", audit.MaxTrailListed)
			}
			return operate(cmd, true, func(ctx context.Context, o operator) error { return o.tellTrail(ctx, asked, who) })
		},
	}
	trail.Flags().StringVar(&asked.UserCode, "code", "", "user code, as shown to the user")
	trail.Flags().StringVar(&who, "account", "", "account id or e-mail address; also the id of a deleted account")
	trail.Flags().StringVar(&asked.LinkID, "link", "", "id of a link")
	trail.Flags().StringVar(&asked.Address, "address", "", "network address that a call came from")
	trail.Flags().IntVar(&asked.Limit, "limit", 100, fmt.Sprintf("lines at most, 1 to %d", audit.MaxTrailListed))
	return withJSON(trail)
}

func (o operator) tellTrail(ctx context.Context, asked link.Asked, who string) error {
	if who != "" {
		var err error
		if asked.AccountID, err = o.everKnown(ctx, who); err != nil {
			return err
		}
	}
	lines, err := o.links.Trail(ctx, asked)
	if err = explain(err, link.ErrUnknown, "--code is not a user code; it has the form XXXX-XXXX"); err != nil {
		return err
	}
	rows := make([]trailJSON, 0, len(lines))
	for _, l := range lines {
		rows = append(rows, trailJSON{At: stamp(l.At), Action: string(l.Action), Code: l.Code, Link: l.Link,
			Account: l.Account, Address: l.Address})
	}
	return o.print(rows, func(w io.Writer) {
		table(w, "nothing in the trail", "TIME\tACTION\tCODE\tLINK\tACCOUNT\tADDRESS", rows, func(r trailJSON) []string {
			return []string{r.At, r.Action, short(r.Code), short(r.Link), short(r.Account), short(r.Address)}
		})
	})
}

// everKnown returns the ID of the account that the operator named. Text that is not an e-mail address may be the ID
// of a deleted account that the trail still contains.
func (o operator) everKnown(ctx context.Context, who string) (string, error) {
	a, err := o.accounts.Find(ctx, who)
	switch {
	case err == nil:
		return a.ID, nil
	case !errors.Is(err, account.ErrNotFound):
		return "", err
	case strings.Contains(who, "@"):
		return "", errors.New("no account has that e-mail address; name a deleted account by its id")
	}
	return strings.TrimSpace(who), nil
}

// short returns enough of a hash to distinguish the lines of a listing.
func short(ref string) string { return said(ref[:min(len(ref), 10)]) }
