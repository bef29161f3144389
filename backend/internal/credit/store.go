package credit

import (
	"context"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
)

// Books that belong to the service. An account's book has a random name.
const (
	BookFree     = "free"     // source of free credit
	BookPaidIn   = "paid_in"  // money that was paid or deducted
	BookUsed     = "used"     // cost of calls
	BookOperator = "operator" // costs that the operator pays: beyond a hold, or of calls that ended too late
	BookClosed   = "closed"   // remaining credit of deleted accounts
)

// Store stores the ledger. Each method that writes is one transaction, which is durable when the method returns.
type Store interface {
	HoldStore
	BookStore
	CapStore
	UsageStore
	CheckStore
}

// HoldStore stores holds and how they ended.
type HoldStore interface {
	// InsertHold sets money aside. It returns ErrNoBook, *NoCredit, *Reserved or *CapReached.
	InsertHold(ctx context.Context, h Hold, at time.Time) error
	// RenewHold returns ErrHoldEnded or ErrNoHold.
	RenewHold(ctx context.Context, id string, until time.Time) error
	// SettleHold ends a hold and counts its call. It returns the charge, or ErrNoHold.
	SettleHold(ctx context.Context, s Settlement) (Amount, error)
	// ExpireHolds releases the holds whose lease ended before now and returns their number.
	ExpireHolds(ctx context.Context, now time.Time) (int, error)
	// RecordCall counts a call that is not paid from credit.
	RecordCall(ctx context.Context, id string, c Call, at time.Time) error
}

// Settlement ends a hold. If Charge exceeds the hold, the operator pays the difference. If Carried is set, the
// operator pays everything.
type Settlement struct {
	HoldID  string
	Charge  Amount
	Carried bool
	Call    Call
	At      time.Time
}

// BookStore stores balances and transfers.
type BookStore interface {
	// Balance returns ErrNoBook if the account has no balance yet.
	Balance(ctx context.Context, accountID string) (Balance, error)
	// CreditHolder returns the holder of an account, or ErrNoAccount.
	CreditHolder(ctx context.Context, accountID string) (Holder, error)
	// OpenBook creates an account's balance with free credit, unless it exists. It returns ErrNoAccount.
	OpenBook(ctx context.Context, b NewBook) error
	// InsertTransfer books t between the account and another book, together with its audit entry, once for each ID. If
	// the ID was booked before, booked is false. It returns ErrNoBook, ErrReferenceUsed, *NoCredit or *Reserved.
	InsertTransfer(ctx context.Context, t Transfer, e audit.Entry) (booked bool, err error)
	// Transfers lists the account's transfers, newest first. It skips the first skip transfers.
	Transfers(ctx context.Context, accountID string, skip, limit int) ([]Transfer, error)
}

// CapStore stores spending caps.
type CapStore interface {
	// SetCreditCaps replaces version c.Version of the caps of the entry's project, or of its account if the entry has no
	// project. If undone is not empty, it marks that entry as undone by e. It returns a *ConflictError, ErrNotUndoable,
	// ErrNoBook or projects.ErrNotFound.
	SetCreditCaps(ctx context.Context, c Caps, e audit.Entry, undone string) error
	// CreditCaps returns the caps of a project, or of the account if project is empty.
	CreditCaps(ctx context.Context, accountID, project string) (Caps, error)
	// Spending returns the spent and held amounts of a project, or of the account if project is empty, for the day and
	// month that contain at.
	Spending(ctx context.Context, accountID, project string, at time.Time) (day, month Spent, err error)
	// ClaimNotice reports whether the caller should mail a notice on a day. It returns false if a notice about the same
	// limit was already mailed on that day. Unless calls are refused, it also returns false if one was mailed in the
	// same period.
	ClaimNotice(ctx context.Context, n Notice, period, day string) (bool, error)
}

// UsageStore reads the recorded calls.
type UsageStore interface {
	// Usage calls row with the sums of the calls that q selects, per hour, model, kind and source.
	Usage(ctx context.Context, q UsageQuery, row func(UsageRow) error) error
	// Refusals counts the refused calls that q selects, by code, most frequent first.
	Refusals(ctx context.Context, q UsageQuery) ([]Refusal, error)
}

// CheckStore checks and prunes the ledger.
type CheckStore interface {
	CheckCredit(ctx context.Context, now time.Time) (Report, error)
	// PruneCredit deletes the rows whose retention period has ended.
	PruneCredit(ctx context.Context, p Prune) error
}

// Balance is the state of an account's book.
type Balance struct {
	Book         string // the book's name in transfers, which does not identify the account
	Posted, Held Amount // Held is part of Posted
	Free         Amount // free credit that the account was granted
	Filled       Amount // the posted amount when money was last added or deducted
	OpenedAt     time.Time
}

// Available returns the amount that a new hold may use.
func (b Balance) Available() Amount { return b.Posted - b.Held }

// Holder holds the facts that decide whether an account gets free credit and may spend.
type Holder struct {
	Email  string
	IP     string // address of its earliest known sign-in with a browser; may be empty
	Proxy  bool   // IP is the address of a proxy, so the holder's network is unknown
	Proved bool   // the mail address is confirmed, or an identity provider is linked
}

// NewBook is a book to create for an account. It gets no free credit if AddressHash had a grant after Since, or if
// NetworkHash, which may be empty, already had NetworkLimit grants.
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
	AccountID     string // owner of the account's book
	Debit, Credit string // "" means the account's book
	Amount        Amount
	At            time.Time
	Note          string
}

// Caps limit the spending per UTC day and month. A nil cap sets no limit. Version counts the changes and starts at 0.
type Caps struct {
	Day, Month *Amount
	Version    int64
}

// Spent holds the amounts spent and held in a period.
type Spent struct{ Spent, Held Amount }

// UsageQuery selects the calls of a project made at or after From and before To.
type UsageQuery struct {
	AccountID, Project string // if Project is empty, all calls of the account
	From, To           time.Time
}

// UsageRow sums the calls of one hour. Refused calls count only in Refused.
type UsageRow struct {
	Project, Model, Kind, Source                 string
	Hour                                         time.Time
	Calls, Failed, Cancelled, Refused, Estimated int64
	TextIn, TextCached, TextOut                  int64
	Duration                                     time.Duration
	Charged                                      Amount
}

// Refusal is the number of calls refused with one code.
type Refusal struct {
	Code   string
	Count  int64
	LastAt time.Time
}

// Prune defines the rows that PruneCredit deletes.
type Prune struct {
	Holds, Usage, Calls, Grants time.Time // older rows are deleted
	Period                      string    // spending of earlier periods is deleted
	CallsOfProject              int       // a project's oldest calls beyond this number are deleted
	Recent                      time.Time // only projects with a call since then are checked for CallsOfProject
}

// Report is the result of checking the ledger. The sums cover the whole database.
type Report struct {
	Accounts                              int
	Posted, Held                          Amount
	Free, PaidIn, Used, Operator, Closed  Amount // debited from Free, PaidIn and Operator; credited to Used and Closed
	OpenHolds, ExpiredHolds, RunOutLeases int    // ExpiredHolds covers the last days; the next sweep releases RunOutLeases
	Differences                           []Difference
	Shortfalls                            []Transfer // newest first: costs that the operator pays
}

// Difference is a sum that does not match the rows it was computed from.
type Difference struct {
	AccountID string
	What      string
	Stored    Amount
	Computed  Amount
}
