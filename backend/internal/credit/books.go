package credit

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/service-dev/service/backend/internal/audit"
)

// Account is an account's credit as shown to its owner.
type Account struct {
	Balance
	Caps       Caps
	Day, Month Spent
	Locked     bool   // if set, a hold fails with *Unproved
	TopUpURL   string // page where the owner adds credit; "" if there is none
}

// Account returns an account's credit. The first call for an account creates its balance and grants the free credit.
func (l *Ledger) Account(ctx context.Context, accountID string) (a Account, err error) {
	err = l.withBook(ctx, accountID, func() (err error) {
		a.Balance, err = l.o.Store.Balance(ctx, accountID)
		return err
	})
	if err != nil {
		return Account{}, fmt.Errorf("read credit: %w", err)
	}
	if a.Caps, err = l.o.Store.CreditCaps(ctx, accountID, ""); err != nil {
		return Account{}, fmt.Errorf("read credit: %w", err)
	}
	if a.Day, a.Month, err = l.o.Store.Spending(ctx, accountID, "", l.now()); err != nil {
		return Account{}, fmt.Errorf("read credit: %w", err)
	}
	if l.o.NeedsProof {
		who, err := l.o.Store.CreditHolder(ctx, accountID)
		if err != nil {
			return Account{}, fmt.Errorf("read credit: %w", err)
		}
		a.Locked = !who.Proved
	}
	a.TopUpURL = l.topUpURL(a.Book)
	return a, nil
}

// topUpURL returns the top-up page with the account's book in the query parameter account. The payment provider
// returns it in its notice.
func (l *Ledger) topUpURL(book string) string {
	u, err := url.Parse(l.o.TopUpURL)
	if err != nil || l.o.TopUpURL == "" {
		return ""
	}
	q := u.Query()
	q.Set("account", book)
	u.RawQuery = q.Encode()
	return u.String()
}

// topUpOf returns the page where the account's owner adds credit, or "". It logs errors instead of returning them,
// because a refusal is complete without the page.
func (l *Ledger) topUpOf(ctx context.Context, accountID string) string {
	if l.o.TopUpURL == "" {
		return ""
	}
	b, err := l.o.Store.Balance(ctx, accountID)
	if err != nil {
		l.o.Log.WarnContext(ctx, "failed to read top-up page of account", "account", accountID, "err", err)
		return ""
	}
	return l.topUpURL(b.Book)
}

// Transfers lists an account's transfers, newest first. It skips the first skip transfers.
func (l *Ledger) Transfers(ctx context.Context, accountID string, skip, limit int) ([]Transfer, error) {
	return l.o.Store.Transfers(ctx, accountID, skip, limit)
}

// Maximum lengths of a reference and a note, in bytes.
const (
	maxReference = 100
	maxNote      = 200
)

// Grant adds money that was paid. It adds the money once for each reference, such as an invoice or payment number,
// and reports whether this call added the money. Apart from free credit, Grant is the only way to add money; the
// handler of a payment provider's notice must call it. It returns ErrBadAmount, ErrReferenceUsed or ErrNoAccount.
func (l *Ledger) Grant(
	ctx context.Context, accountID string, amount Amount, reference, note string, by audit.Actor,
) (bool, error) {
	t := Transfer{ID: reference, AccountID: accountID, Debit: BookPaidIn, Amount: amount, Note: note}
	return l.transfer(ctx, t, "credit.added", "added", by)
}

// Take deducts money, once for each reference. It never deducts money held by calls. Besides Grant's errors, it may
// return *NoCredit or *Reserved.
func (l *Ledger) Take(
	ctx context.Context, accountID string, amount Amount, reference, note string, by audit.Actor,
) (bool, error) {
	return l.transfer(ctx, Transfer{
		ID: reference, AccountID: accountID, Credit: BookPaidIn, Amount: amount, Note: note,
	}, "credit.taken", "took", by)
}

func (l *Ledger) transfer(
	ctx context.Context, t Transfer, action, verb string, by audit.Actor,
) (booked bool, err error) {
	if t.Amount <= 0 || t.Amount > MaxAmount {
		return false, ErrBadAmount
	}
	reference, note := strings.TrimSpace(t.ID), strings.TrimSpace(t.Note)
	if reference == "" || len(reference) > maxReference || len(note) > maxNote {
		return false, fmt.Errorf("a transfer needs a reference of 1 to %d bytes and a note of at most %d bytes", maxReference,
			maxNote)
	}
	t.ID, t.Note, t.At = "reference:"+reference, note, l.now()
	e := audit.New(t.At, t.AccountID, by, action, "", fmt.Sprintf("%s %s USD of credit (%s)", verb, t.Amount, reference))
	err = l.withBook(ctx, t.AccountID, func() (err error) {
		booked, err = l.o.Store.InsertTransfer(ctx, t, e)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("book transfer: %w", err)
	}
	return booked, nil
}

// Project is a project's spending together with its caps. Keys is the part of Day that calls with a project key alone
// spent and hold.
type Project struct {
	Caps             Caps
	Day, Month, Keys Spent
}

// Project returns the caps of a project and the amounts already spent.
func (l *Ledger) Project(ctx context.Context, accountID, project string) (p Project, err error) {
	if p.Caps, err = l.o.Store.CreditCaps(ctx, accountID, project); err != nil {
		return Project{}, fmt.Errorf("read caps: %w", err)
	}
	if p.Day, p.Month, err = l.o.Store.Spending(ctx, accountID, project, l.now()); err != nil {
		return Project{}, fmt.Errorf("read spending: %w", err)
	}
	today, _ := Periods(l.now())
	if p.Keys, err = keySpending(ctx, l.o.Store, accountID, project, today); err != nil {
		return Project{}, fmt.Errorf("read spending: %w", err)
	}
	return p, nil
}

// Usage calls row with the sums of the calls that q selects, per hour, project, model, kind and source.
func (l *Ledger) Usage(ctx context.Context, q UsageQuery, row func(UsageRow) error) error {
	return l.o.Store.Usage(ctx, q, row)
}

// Refusals counts the refused calls that q selects, by code. It counts only the calls kept within CallsKept and
// MaxCalls.
func (l *Ledger) Refusals(ctx context.Context, q UsageQuery) ([]Refusal, error) {
	return l.o.Store.Refusals(ctx, q)
}

// Welcome creates the balance of an account whose owner has just signed in. At this point the owner's network is
// known, so the free credit counts toward the network's limit. If free credit is disabled, the balance is created
// when it is first used.
func (l *Ledger) Welcome(ctx context.Context, accountID string) error {
	if l.o.Free == 0 {
		return nil
	}
	return l.withBook(ctx, accountID, func() error {
		_, err := l.o.Store.Balance(ctx, accountID)
		return err
	})
}

// open creates an account's balance and decides whether it gets free credit.
func (l *Ledger) open(ctx context.Context, accountID string) error {
	who, err := l.o.Store.CreditHolder(ctx, accountID)
	if err != nil {
		return err
	}
	now := l.now()
	b := NewBook{
		AccountID: accountID, Book: "acct_" + strings.ReplaceAll(uuid.NewString(), "-", ""), Free: l.o.Free, At: now,
		AddressHash: l.o.Hasher.Hash("free credit address", addressOf(who.Email)), NetworkLimit: maxOfNetwork,
		Since: now.Truncate(24 * time.Hour).Add(-grantKept),
	}
	if network := networkOf(who.IP, who.Proxy); network != "" {
		b.NetworkHash = l.o.Hasher.Hash("free credit network", network)
	}
	return l.o.Store.OpenBook(ctx, b)
}
