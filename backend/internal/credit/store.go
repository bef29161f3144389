package credit

import (
	"context"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
)

// Books of the service. An account's book has a random name.
const (
	BookFree     = "free"     // free credit comes from here
	BookPaidIn   = "paid_in"  // what was paid in, and is taken back
	BookUsed     = "used"     // what calls cost
	BookOperator = "operator" // what the operator carries: costs above a hold, and of calls that ended too late
	BookClosed   = "closed"   // what was left when an account was deleted
)

// Store keeps the ledger. Each method that writes is one transaction, durable when it returns.
type Store interface {
	HoldStore
	BookStore
	CapStore
	UsageStore
	CheckStore
}

// HoldStore keeps holds and what came of them.
type HoldStore interface {
	// InsertHold sets money aside. It returns ErrNoBook, *NoCredit, *Reserved or *CapReached.
	InsertHold(ctx context.Context, h Hold, at time.Time) error
	// RenewHold returns ErrHoldEnded, or ErrNoHold.
	RenewHold(ctx context.Context, id string, until time.Time) error
	// SettleHold resolves a hold and counts its call. It returns the charge, or ErrNoHold.
	SettleHold(ctx context.Context, s Settlement) (Amount, error)
	// ExpireHolds gives back holds whose lease ended before now and returns how many.
	ExpireHolds(ctx context.Context, now time.Time) (int, error)
	// RecordCall counts a call without money.
	RecordCall(ctx context.Context, id string, c Call, at time.Time) error
}

// Settlement ends a hold. Of Charge, what exceeds the hold is booked on the operator.
type Settlement struct {
	HoldID string
	Charge Amount
	Call   Call
	At     time.Time
}

// BookStore keeps balances and transfers.
type BookStore interface {
	// Balance returns ErrNoBook if the account has none yet.
	Balance(ctx context.Context, accountID string) (Balance, error)
	// CreditHolder returns who an account belongs to, or ErrNoAccount.
	CreditHolder(ctx context.Context, accountID string) (Holder, error)
	// OpenBook opens an account's balance with free credit, unless the account has one. It returns ErrNoAccount.
	OpenBook(ctx context.Context, b NewBook) error
	// InsertTransfer books t between the account and another book, and its entry, once for each id; booked is false for
	// a repeat. It returns ErrNoBook, ErrReferenceUsed, *NoCredit or *Reserved.
	InsertTransfer(ctx context.Context, t Transfer, e audit.Entry) (booked bool, err error)
	// Transfers lists the account's transfers, newest first, of which the first skip are left out.
	Transfers(ctx context.Context, accountID string, skip, limit int) ([]Transfer, error)
}

// CapStore keeps spending caps.
type CapStore interface {
	// SetCreditCaps sets the caps of the entry's project, or without a project of its account, over those of c.Version. It
	// marks the entry undone, unless that is empty, as undone by e. It returns a *ConflictError, ErrNotUndoable, ErrNoBook
	// or projects.ErrNotFound.
	SetCreditCaps(ctx context.Context, c Caps, e audit.Entry, undone string) error
	// CreditCaps returns the caps of a project, or of the account if project is empty.
	CreditCaps(ctx context.Context, accountID, project string) (Caps, error)
	// Spending returns what a project, or the account if project is empty, spent and holds in the periods of at.
	Spending(ctx context.Context, accountID, project string, at time.Time) (day, month Spent, err error)
	// ClaimNotice reports whether a notice is to be mailed on a day: none about the same was on that day, and none about
	// the same period, unless calls are refused.
	ClaimNotice(ctx context.Context, n Notice, period, day string) (bool, error)
}

// UsageStore reads what calls were counted.
type UsageStore interface {
	// Usage calls row with the rows of q, by hour, model, kind and source.
	Usage(ctx context.Context, q UsageQuery, row func(UsageRow) error) error
	// Refusals counts the refused calls of q by code, the most frequent first.
	Refusals(ctx context.Context, q UsageQuery) ([]Refusal, error)
}

// CheckStore checks and prunes the ledger.
type CheckStore interface {
	CheckCredit(ctx context.Context, now time.Time) (Report, error)
	// PruneCredit deletes what is kept for a limited time.
	PruneCredit(ctx context.Context, p Prune) error
}

// Balance is what an account has.
type Balance struct {
	Book         string // its name in transfers; it says nothing about the account
	Posted, Held Amount // Held is part of Posted
	Free         Amount // free credit that was granted
	Filled       Amount // what was posted when money last came in or was taken back
	OpenedAt     time.Time
}

// Available is what a new hold may take.
func (b Balance) Available() Amount { return b.Posted - b.Held }

// Holder is what decides on an account's free credit, and whether it may spend.
type Holder struct {
	Email  string
	IP     string // where it signed in first from, of the browser sessions that are known; may be empty
	Proved bool   // the address is confirmed, or an identity provider is linked
}

// NewBook is the book of an account that has none. The hashes decide on the free credit: it is not granted if there was
// a grant to AddressHash after Since, or if there were NetworkLimit to NetworkHash, which may be empty.
type NewBook struct {
	AccountID, Book          string
	Free                     Amount
	AddressHash, NetworkHash string
	NetworkLimit             int
	Since, At                time.Time
}

// Transfer is one row of the ledger.
type Transfer struct {
	ID            string
	AccountID     string // whose book is the one that is not named
	Debit, Credit string // "" is the account's book
	Amount        Amount
	At            time.Time
	Note          string
}

// Caps limit what is spent in a day and a month of UTC; nil does not limit. Version counts changes, 0 if there was none.
type Caps struct {
	Day, Month *Amount
	Version    int64
}

// Spent is what was spent and is held in a period.
type Spent struct{ Spent, Held Amount }

// UsageQuery selects the calls of a project from a time until before another.
type UsageQuery struct {
	AccountID, Project string // without a project: all of the account
	From, To           time.Time
}

// UsageRow sums the calls of an hour. Refused calls count in Refused only.
type UsageRow struct {
	Project, Model, Kind, Source                 string
	Hour                                         time.Time
	Calls, Failed, Cancelled, Refused, Estimated int64
	TextIn, TextCached, TextOut                  int64
	Duration                                     time.Duration
	Charged                                      Amount
}

// Refusal counts calls that were refused for one reason.
type Refusal struct {
	Code   string
	Count  int64
	LastAt time.Time
}

// Prune says until when rows are kept.
type Prune struct {
	Holds, Usage, Calls, Grants time.Time // rows from before are deleted
	Period                      string    // as are spending rows of earlier periods
	CallsOfProject              int       // and the oldest calls of a project beyond this many
}

// Report is what a check of the ledger found. Sums are of the whole database.
type Report struct {
	Accounts                              int
	Posted, Held                          Amount
	Free, PaidIn, Used, Operator, Closed  Amount // what went out of free, paid_in and operator, and into used and closed
	OpenHolds, ExpiredHolds, RunOutLeases int    // ExpiredHolds of the last days; RunOutLeases wait for the next sweep
	Differences                           []Difference
	Shortfalls                            []Transfer // latest first: costs that the operator carries
}

// Difference is a sum that does not follow from its rows.
type Difference struct {
	AccountID string
	What      string
	Stored    Amount
	Computed  Amount
}
