package app

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"

	"github.com/service-dev/service/backend/internal/config"
	"github.com/service-dev/service/backend/internal/credit"
	"github.com/service-dev/service/backend/internal/db"
	"github.com/service-dev/service/backend/internal/secret"
)

// maxFree is the maximum free credit of an account.
const maxFree = 1000 * credit.USD

// NewLedger returns the ledger for a configuration. The server passes notify; admin commands pass nil. If the server
// can send mail, notices are mailed, and accounts cannot spend before their address is verified.
func NewLedger(
	c config.Config, d *db.DB, log *slog.Logger, notify func(context.Context, credit.Notice),
) (*credit.Ledger, error) {
	free, err := credit.ParseAmount(cmp.Or(c.FreeCredit, "0.00"))
	if err != nil || free > maxFree {
		return nil, fmt.Errorf("setting free_credit: must be an amount from 0.00 to 1000.00, not %q", c.FreeCredit)
	}
	o := credit.Options{
		Store: credit.NewStore(d), Hasher: secret.NewHasher(c.HMACKey), Free: free, NeedsProof: c.Mail.Host != "",
		TopUpURL: c.TopUpURL, Log: log,
	}
	if c.Mail.Host != "" {
		o.Notify = notify
	}
	return credit.New(o), nil
}

// notifyOfSpending mails the account's owner a notice that most of a cap or of the credit is spent.
func (f *features) notifyOfSpending(ctx context.Context, n credit.Notice) {
	page := "/account/credit"
	if n.Project != "" {
		page = "/projects/" + n.Project + "/gateway"
	}
	f.accounts.SpendingNotice(ctx, n.AccountID, n.Text(), page)
}
