package credit

import (
	"context"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
)

// Books of the service. An account's book has a random name.
const (
	BookFree     = "free"     // free credit comes from here
	BookPaidIn   = "paid_in"  // money that was paid in or taken back
	BookUsed     = "used"     // the cost of calls
	BookOperator = "operator" // costs that the operator pays: those above a hold, and of calls that ended too late
	BookClosed   = "closed"   // the rest of deleted accounts
)

// Store keeps the ledger. Each method that writes is one transaction, durable when it returns.
type Store interface {
	HoldStore
	BookStore
	CapStore
	UsageStore
	CheckStore
}

// HoldStore stores holds and their outcomes.
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

// Settlement ends a hold. The operator pays the part of Charge that exceeds the hold, or all of it if Carried is set.
type Settlement struct {
	HoldID  string
	Charge  Amount
	Carried bool
	Call    Call
	At      time.Time
}

// BookStore keeps balances and transfers.
type BookStore interface {
	// Balance returns ErrNoBook if the account has none yet.
	Balance(ctx context.Context, accountID string) (Balance, error)
	// CreditHolder returns the holder of an account, or ErrNoAccount.
	CreditHolder(ctx context.Context, accountID string) (Holder, error)
	// OpenBook opens an account's balance with free credit, unless the account has one. It returns ErrNoAccount.
	OpenBook(ctx context.Context, b NewBook) error
	// InsertTransfer books t between the account and another book, and its entry, once for each id; booked is false for
	// a repeat. It returns ErrNoBook, ErrReferenceUsed, *NoCredit or *Reserved.
	InsertTransfer(ctx context.Context, t Transfer, e audit.Entry) (booked bool, err error)
	// Transfers lists the account's transfers, newest first, without the first skip.
	Transfers(ctx context.Context, accountID string, skip, limit int) ([]Transfer, error)
}

// CapStore keeps spending caps.
type CapStore interface {
	// SetCreditCaps sets the caps of the entry's project, or without a project of its account, over those of c.Version.
	// It marks the entry undone, unless that is empty, as undone by e. It returns a *ConflictError, ErrNotUndoable,
	// ErrNoBook or projects.ErrNotFound.
	SetCreditCaps(ctx context.Context, c Caps, e audit.Entry, undone string) error
	// CreditCaps returns the caps of a project, or of the account if project is empty.
	CreditCaps(ctx context.Context, accountID, project string) (Caps, error)
	// Spending returns the spent and held amounts of a project, or of the account if project is empty, in the periods
	// of at.
	Spending(ctx context.Context, accountID, project string, at time.Time) (day, month Spent, err error)
	// ClaimNotice reports whether a notice is to be mailed on a day. It is not if a notice about the same limit was
	// mailed on that day, or about the same period unless calls are refused.
	ClaimNotice(ctx context.Context, n Notice, period, day string) (bool, error)
}

// UsageStore reads the counted calls.
type UsageStore interface {
	// Usage calls row with the rows of q, by hour, model, kind and source.
	Usage(ctx context.Context, q UsageQuery, row func(UsageRow) error) error
	// Refusals counts the refused calls of q by code, the most frequent first.
	Refusals(ctx context.Context, q UsageQuery) ([]Refusal, error)
}

// CheckStore checks and prunes the ledger.
type CheckStore interface {
	CheckCredit(ctx context.Context, now time.Time) (Report, error)
	// PruneCredit deletes the rows whose retention has ended.
	PruneCredit(ctx context.Context, p Prune) error
}

// Balance is the balance of an account.
type Balance struct {
	Book         string // its name in transfers, which reveals nothing about the account
	Posted, Held Amount // Held is part of Posted
	Free         Amount // free credit that was granted
	Filled       Amount // the posted amount when money was last added or taken back
	OpenedAt     time.Time
}

// Available is the amount that a new hold may take.
func (b Balance) Available() Amount { return b.Posted - b.Held }

// Holder holds the facts that decide on an account's free credit and whether it may spend.
type Holder struct {
	Email  string
	IP     string // address of its earliest known sign-in by browser; may be empty
	Proved bool   // the address is confirmed, or an identity provider is linked
}

// NewBook is the book of an account that has none. The hashes decide on the free credit: it is not granted if
// AddressHash had a grant after Since, or if NetworkHash, which may be empty, had NetworkLimit of them.
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
	AccountID     string // owner of the book that is not named
	Debit, Credit string // "" is the account's book
	Amount        Amount
	At            time.Time
	Note          string
}

// Caps limit the spending in a UTC day and month; nil does not limit. Version counts changes, 0 if there was none.
type Caps struct {
	Day, Month *Amount
	Version    int64
}

// Spent is the amount spent and held in a period.
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
	Holds, Usage, Calls, Grants time.Time // older rows are deleted
	Period                      string    // spending rows of earlier periods are deleted
	CallsOfProject              int       // the oldest calls of a project beyond this number are deleted
}

// Report is the result of a check of the ledger. Sums are of the whole database.
type Report struct {
	Accounts                              int
	Posted, Held                          Amount
	Free, PaidIn, Used, Operator, Closed  Amount // outflow of free, paid_in and operator; inflow of used and closed
	OpenHolds, ExpiredHolds, RunOutLeases int    // ExpiredHolds of the last days; RunOutLeases wait for the next sweep
	Differences                           []Difference
	Shortfalls                            []Transfer // latest first: costs that the operator pays
}

// Difference is a sum that does not match its rows.
type Difference struct {
	AccountID string
	What      string
	Stored    Amount
	Computed  Amount
}
