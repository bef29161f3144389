package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/link"
)

// trailJSON is one line of the trail. Code, link, account and address are keyed hashes: equal ones are the same thing.
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
		Use: "trail", Short: "Read what happened to links and the codes that asked for them, in the last 90 days", Args: cobra.NoArgs,
		Long: `Read what happened to links and the codes that asked for them, in the last 90 days, newest first.

The trail holds keyed hashes only. What you name is hashed with the server's key and looked for; equal hashes in the
listing are the same code, link, account or address.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := netip.ParseAddr(asked.Address); asked.Address != "" && err != nil {
				return errors.New("--address is not a network address")
			}
			return operate(cmd, true, func(ctx context.Context, o operator) error { return o.tellTrail(ctx, asked, who) })
		},
	}
	trail.Flags().StringVar(&asked.UserCode, "code", "", "user code, in the form that a person was shown")
	trail.Flags().StringVar(&who, "account", "", "account id or e-mail address; the id of a deleted account too")
	trail.Flags().StringVar(&asked.LinkID, "link", "", "id of a link")
	trail.Flags().StringVar(&asked.Address, "address", "", "network address that a call came from")
	trail.Flags().IntVar(&asked.Limit, "limit", 100, fmt.Sprintf("lines at most, 1 to %d", audit.MaxTrailListed))
	return withJSON(trail)
}

func (o operator) tellTrail(ctx context.Context, asked link.Asked, who string) error {
	if asked.AccountID = who; who != "" {
		if a, err := o.find(ctx, who); err == nil {
			asked.AccountID = a.ID
		}
	}
	lines, err := o.links.Trail(ctx, asked)
	if errors.Is(err, link.ErrUnknown) {
		return errors.New("--code is not a user code; it has the form XXXX-XXXX")
	}
	if err != nil {
		return err
	}
	rows := make([]trailJSON, 0, len(lines))
	for _, l := range lines {
		rows = append(rows, trailJSON{At: stamp(l.At), Action: string(l.Action), Code: l.Code, Link: l.Link, Account: l.Account, Address: l.Address})
	}
	return o.print(rows, func(w io.Writer) {
		if len(rows) == 0 {
			fmt.Fprintln(w, "nothing in the trail")
			return
		}
		fmt.Fprintln(w, "TIME\tACTION\tCODE\tLINK\tACCOUNT\tADDRESS")
		for _, r := range rows {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", r.At, r.Action, short(r.Code), short(r.Link), short(r.Account), short(r.Address))
		}
	})
}

// short is as much of a hash as tells the lines of a listing apart.
func short(ref string) string { return said(ref[:min(len(ref), 10)]) }
