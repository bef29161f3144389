package server

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/link"
)

// linkJSON is a link as printed for the operator. It contains no secret.
type linkJSON struct {
	ID         string `json:"linkId"`
	AccountID  string `json:"accountId"`
	Host       string `json:"host"`
	OS         string `json:"os"`
	Client     string `json:"client"`
	Address    string `json:"address"`
	LinkedAt   string `json:"linkedAt"`
	FirstUsed  string `json:"firstUsedAt"`
	LastUsed   string `json:"lastUsedAt"`
	LastUsedBy string `json:"lastAddress"`
	ExpiresAt  string `json:"expiresAt"`
	RevokedAt  string `json:"revokedAt"`
}

func linksCommand() *cobra.Command {
	return withJSON(&cobra.Command{
		Use: "links ACCOUNT-OR-EMAIL", Short: "List an account's links, including revoked ones", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return operateOn(cmd, args[0], false, func(ctx context.Context, o operator, a account.Account) error {
				all, err := o.links.AllLinks(ctx, a.ID)
				if err != nil {
					return err
				}
				return o.tellLinks(all)
			})
		},
	})
}

func (o operator) tellLinks(all []link.Link) error {
	rows, live := make([]linkJSON, 0, len(all)), ""
	for _, l := range all {
		rows = append(rows, linkJSON{ID: l.ID, AccountID: l.AccountID, Host: said(l.Requester.Host),
			OS: said(l.Requester.OS), Client: said(l.Requester.Client),
			Address: said(l.Requester.IP), LinkedAt: stamp(l.LinkedAt), FirstUsed: stamp(l.UsedAt), LastUsed: stamp(l.LastUsedAt), LastUsedBy: said(l.LastIP),
			ExpiresAt: stamp(l.ExpiresAt), RevokedAt: stamp(l.RevokedAt)})
		if live == "" && l.RevokedAt.IsZero() {
			live = l.ID
		}
	}
	return o.print(rows, func(w io.Writer) {
		table(w, "no links", "LINK\tHOST\tOS\tCLIENT\tADDRESS\tLINKED\tFIRST USED\tLAST USED\tLAST ADDRESS\tREVOKED", rows,
			func(r linkJSON) []string {
				return []string{r.ID, r.Host, r.OS, r.Client, r.Address, r.LinkedAt, r.FirstUsed, r.LastUsed, r.LastUsedBy,
					r.RevokedAt}
			})
		if live != "" {
			fmt.Fprintln(w, "\nnext: service-backend admin revoke --link "+live)
		}
	})
}

func revokeCommand() *cobra.Command {
	var accountID, email, linkID string
	revoke := &cobra.Command{
		Use: "revoke", Short: "Revoke all links of an account, or one link; their tokens then get 401", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			named := 0
			for _, s := range []string{accountID, email, linkID} {
				if s != "" {
					named++
				}
			}
			if named != 1 {
				return errors.New("set exactly one of --account, --email and --link")
			}
			return operate(cmd, true, func(ctx context.Context, o operator) error {
				if linkID != "" {
					return o.revokeOne(ctx, linkID)
				}
				return o.revokeAll(ctx, accountID+email)
			})
		},
	}
	revoke.Flags().StringVar(&accountID, "account", "", "account id")
	revoke.Flags().StringVar(&email, "email", "", "e-mail address of the account")
	revoke.Flags().StringVar(&linkID, "link", "", "id of one link")
	return withJSON(revoke)
}

func (o operator) revokeOne(ctx context.Context, linkID string) error {
	l, err := o.links.AnyLink(ctx, linkID)
	if err == nil {
		err = o.links.RevokeLink(ctx, l.AccountID, l.ID, audit.Operator())
	}
	err = explain(err, link.ErrUnknown,
		"no live link has that id; list them with service-backend admin links ACCOUNT-OR-EMAIL")
	if err != nil {
		return err
	}
	return o.tellRevoked(l.AccountID, 1)
}

func (o operator) revokeAll(ctx context.Context, who string) error {
	a, err := o.find(ctx, who)
	if err != nil {
		return err
	}
	n, err := o.links.RevokeAll(ctx, a.ID, audit.Operator())
	if err != nil {
		return err
	}
	if n == 0 {
		return errors.New("the account has no live link; service-backend admin links also lists revoked ones")
	}
	return o.tellRevoked(a.ID, n)
}

func (o operator) tellRevoked(accountID string, n int) error {
	return o.print(map[string]any{"accountId": accountID, "revoked": n}, func(w io.Writer) {
		fmt.Fprintf(w, "revoked %d\nnext: service-backend admin links %s\n", n, accountID)
	})
}
