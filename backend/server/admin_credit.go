package server

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/credit"
)

// creditJSON is an account's credit as shown to the operator. Amounts are in micro-USD.
type creditJSON struct {
	AccountID string         `json:"accountId"`
	Reference string         `json:"paymentReference"` // part of topup_url and of the payment notice
	Balance   credit.Amount  `json:"balanceMicroUsd"`
	Reserved  credit.Amount  `json:"reservedMicroUsd"`
	Free      credit.Amount  `json:"freeMicroUsd"`
	Locked    bool           `json:"locked"` // whether the credit is locked until the address is verified
	Booked    *bool          `json:"booked,omitempty"`
	Transfers []transferJSON `json:"transfers"`
}

// transferJSON is one row of the ledger. An empty book is the account's own.
type transferJSON struct {
	At     string        `json:"at"`
	ID     string        `json:"id"`
	Debit  string        `json:"debit"`
	Credit string        `json:"credit"`
	Amount credit.Amount `json:"microUsd"`
	Note   string        `json:"note"`
}

// creditChange is the change requested by the flags of admin credit.
type creditChange struct{ add, take, reference, note string }

func creditCommand() *cobra.Command {
	var c creditChange
	cmd := &cobra.Command{
		Use: "credit ACCOUNT-OR-EMAIL", Short: "Show an account's credit, add to it or take from it", Args: cobra.ExactArgs(1),
		Long: `Show an account's credit and its last transfers, add to it or take from it.

Amounts are in USD, such as 5.00. A reference, such as the number of an invoice, is booked once: repeating a
command changes nothing, and another amount or account with the same reference is refused. Amounts held by calls in
flight cannot be taken. References and notes are kept when the account is deleted, so write no names into them.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			amount, err := c.amount()
			if err != nil {
				return err
			}
			return operateOn(cmd, args[0], true, func(ctx context.Context, o operator, a account.Account) error {
				booked, err := o.change(ctx, a, c, amount)
				if err != nil {
					return err
				}
				return o.tellCredit(ctx, a, booked)
			})
		},
	}
	cmd.Flags().StringVar(&c.add, "add", "", "amount that was paid in")
	cmd.Flags().StringVar(&c.take, "take", "", "amount to take back")
	cmd.Flags().StringVar(&c.reference, "reference", "", "unique reference to book the change under, such as an invoice")
	cmd.Flags().StringVar(&c.note, "note", "", "a remark that the account's owner can read")
	return withJSON(cmd)
}

// amount returns the amount to add or take, or 0 for no change.
func (c creditChange) amount() (credit.Amount, error) {
	switch {
	case c.add != "" && c.take != "":
		return 0, errors.New("use either --add or --take, not both")
	case c.add == "" && c.take == "" && (c.reference != "" || c.note != ""):
		return 0, errors.New("--reference and --note require --add or --take")
	case c.add == "" && c.take == "":
		return 0, nil
	case c.reference == "":
		return 0, errors.New("set --reference to the invoice or the reason, so that the change is booked only once")
	}
	amount, err := credit.ParseAmount(c.add + c.take)
	if err == nil && amount == 0 {
		err = credit.ErrBadAmount
	}
	if err != nil {
		return 0, fmt.Errorf("invalid amount: %w; write it like 5.00", err)
	}
	return amount, nil
}

func (o operator) change(ctx context.Context, a account.Account, c creditChange, n credit.Amount) (*bool, error) {
	if n == 0 {
		return nil, nil
	}
	book := o.credit.Grant
	if c.take != "" {
		book = o.credit.Take
	}
	booked, err := book(ctx, a.ID, n, c.reference, c.note, audit.Operator())
	err = explain(err, credit.ErrReferenceUsed, "another amount or account was booked under this reference; "+
		"nothing was changed. See it with service-backend admin credit, or choose another reference")
	return &booked, explainTake(err)
}

// explainTake returns an error that contains the amount that the operator can take.
func explainTake(err error) error {
	var none *credit.NoCredit
	var reserved *credit.Reserved
	switch {
	case errors.As(err, &none) && none.Held > 0:
		return fmt.Errorf("the account has only %s USD; nothing was changed. Take at most %s USD now, the other %s USD are "+
			"held by calls in flight", none.Available+none.Held, none.Available, none.Held)
	case errors.As(err, &none) && none.Available == 0:
		return errors.New("the account has no credit; nothing was changed")
	case errors.As(err, &none):
		return fmt.Errorf("the account has only %s USD; nothing was changed. Take no more than that", none.Available)
	case errors.As(err, &reserved):
		return fmt.Errorf("calls in flight hold %s USD of the account's %s USD; nothing was changed. Take at most %s USD, "+
			"or the rest when they have ended", reserved.Held, reserved.Available+reserved.Held, reserved.Available)
	}
	return err
}

// transfersShown is the number of an account's transfers that are shown.
const transfersShown = 10

func (o operator) tellCredit(ctx context.Context, a account.Account, booked *bool) error {
	c, err := o.credit.Account(ctx, a.ID)
	if err != nil {
		return err
	}
	last, err := o.credit.Transfers(ctx, a.ID, 0, transfersShown)
	if err != nil {
		return err
	}
	out := creditJSON{AccountID: a.ID, Reference: c.Book, Balance: c.Posted, Reserved: c.Held, Free: c.Free,
		Locked: c.Locked, Booked: booked, Transfers: transferRows(last)}
	return o.print(out, func(w io.Writer) {
		locked := ""
		if c.Locked {
			locked = ", locked until the address is confirmed"
		}
		fmt.Fprintf(w, "account\t%s (%s)\nbalance\t%s USD, of which calls hold %s%s\nfree credit\t%s USD granted\n", a.ID,
			a.Email, c.Posted, c.Held, locked, c.Free)
		if booked != nil {
			fmt.Fprintf(w, "booked\t%s\n", map[bool]string{true: "now", false: "before; nothing was changed"}[*booked])
		}
		fmt.Fprintf(w, "next\t%s\n\n", "add credit: service-backend admin credit "+a.ID+" --add 5.00 --reference INVOICE")
		table(w, "no transfers", "TIME\tAMOUNT\tBOOK\tFOR\tNOTE", out.Transfers, transferJSON.cells)
	})
}

func transferRows(all []credit.Transfer) []transferJSON {
	rows := make([]transferJSON, 0, len(all))
	for _, t := range all {
		rows = append(rows, transferJSON{
			At: stamp(t.At), ID: t.ID, Debit: t.Debit, Credit: t.Credit, Amount: t.Amount, Note: t.Note,
		})
	}
	return rows
}

// cells shows transfers to the account as positive amounts and transfers from it as negative ones.
func (t transferJSON) cells() []string {
	amount, book := t.Amount, t.Debit
	if t.Debit == "" {
		amount, book = -amount, t.Credit
	}
	return []string{t.At, amount.String(), book, t.ID, said(t.Note)}
}

// ledgerJSON is the result of the ledger check. Amounts are in micro-USD.
type ledgerJSON struct {
	OK           bool              `json:"ok"`
	Accounts     int               `json:"accounts"`
	Balances     credit.Amount     `json:"balancesMicroUsd"`
	Reserved     credit.Amount     `json:"reservedMicroUsd"`
	Free         credit.Amount     `json:"freeMicroUsd"`
	PaidIn       credit.Amount     `json:"paidInMicroUsd"`
	Used         credit.Amount     `json:"usedMicroUsd"`
	Operator     credit.Amount     `json:"operatorMicroUsd"` // the part of used that was not charged to any account
	Closed       credit.Amount     `json:"closedMicroUsd"`
	OpenHolds    int               `json:"openHolds"`
	ExpiredHolds int               `json:"expiredHolds"`
	RunOutLeases int               `json:"runOutLeases"`
	Differences  []ledgerDifferent `json:"differences"`
	Shortfalls   []transferJSON    `json:"shortfalls"`
}

type ledgerDifferent struct {
	AccountID string        `json:"accountId"`
	Sum       string        `json:"sum"`
	Stored    credit.Amount `json:"storedMicroUsd"`
	Computed  credit.Amount `json:"computedMicroUsd"`
}

// errDifferences makes admin ledger exit with code 1.
var errDifferences = errors.New("the ledger does not add up: stop the servers, keep a copy of the database, and report " +
	"the differences above")

func ledgerCommand() *cobra.Command {
	return withJSON(&cobra.Command{
		Use: "ledger", Short: "Check every sum of the ledger, and list the costs that the operator pays", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return operate(cmd, false, func(ctx context.Context, o operator) error { return o.tellLedger(ctx) })
		},
	})
}

func (o operator) tellLedger(ctx context.Context) error {
	r, err := o.credit.Check(ctx)
	if err != nil {
		return err
	}
	out := ledgerJSON{
		OK: len(r.Differences) == 0, Accounts: r.Accounts, Balances: r.Posted, Reserved: r.Held, Free: r.Free,
		PaidIn: r.PaidIn, Used: r.Used, Operator: r.Operator, Closed: r.Closed, OpenHolds: r.OpenHolds,
		ExpiredHolds: r.ExpiredHolds, RunOutLeases: r.RunOutLeases, Differences: []ledgerDifferent{},
		Shortfalls: transferRows(r.Shortfalls),
	}
	for _, d := range r.Differences {
		out.Differences = append(out.Differences, ledgerDifferent{d.AccountID, d.What, d.Stored, d.Computed})
	}
	if err := o.print(out, func(w io.Writer) { out.write(w) }); err != nil || out.OK {
		return err
	}
	return errDifferences
}

func (l ledgerJSON) write(w io.Writer) {
	state, next := "every sum matches its rows", "see an account: service-backend admin credit ACCOUNT"
	switch {
	case !l.OK:
		state, next = fmt.Sprintf("%d sums do not match their rows", len(l.Differences)), "see the differences below"
	case l.RunOutLeases > 0:
		next = "wait 20 seconds until a running server has released the holds with expired leases, then run this again"
	case l.Operator > 0:
		next = "look at the shortfalls: a call that costs more than its hold (short:) has a wrong price or bound"
	}
	fmt.Fprintf(w, "ledger\t%s\nbalances\t%s USD of %d accounts, of which calls hold %s\n", state, l.Balances, l.Accounts,
		l.Reserved)
	fmt.Fprintf(w, "came in\t%s USD paid in, %s USD free\nwent out\t%s USD used, %s USD of deleted accounts\n", l.PaidIn,
		l.Free, l.Used, l.Closed)
	fmt.Fprintf(w, "operator\tcarries %s USD of what was used\nholds\t%d open, %d of them with a lease that ran out; "+
		"%d given back in the last 7 days\nnext\t%s\n", l.Operator, l.OpenHolds, l.RunOutLeases, l.ExpiredHolds, next)
	if !l.OK {
		fmt.Fprintln(w)
		table(w, "", "ACCOUNT\tSUM\tSTORED\tCOMPUTED", l.Differences, func(d ledgerDifferent) []string {
			return []string{d.AccountID, d.Sum, d.Stored.String(), d.Computed.String()}
		})
	}
	if len(l.Shortfalls) > 0 {
		fmt.Fprintln(w)
		table(w, "", "TIME\tAMOUNT\tFOR", l.Shortfalls, func(t transferJSON) []string {
			return []string{t.At, t.Amount.String(), t.ID}
		})
	}
}
