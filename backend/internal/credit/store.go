package credit

import (
	"time"

	"github.com/service-dev/service/backend/internal/db"
)

// Books that belong to the service. An account's book has a random name.
const (
	BookFree     = "free"     // source of free credit
	BookPaidIn   = "paid_in"  // money that was paid or deducted
	BookUsed     = "used"     // cost of calls
	BookOperator = "operator" // costs that the operator pays: beyond a hold, or of calls that ended too late
	BookClosed   = "closed"   // remaining credit of deleted accounts
)

// Store stores the ledger. Every method that writes is one transaction, which is durable when the method returns.
type Store struct{ *db.DB }

// NewStore returns a store in d.
func NewStore(d *db.DB) *Store { return &Store{d} }

// Settlement ends a hold. If Charge exceeds the hold, the operator pays the difference. If Carried is set, the
// operator pays everything.
type Settlement struct {
	HoldID  string
	Charge  Amount
	Carried bool
	Call    Call
	At      time.Time
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

// Holder holds the facts that determine whether an account gets free credit and can spend it.
type Holder struct {
	Email  string
	IP     string // address of its earliest known sign-in with a browser; may be empty
	Proxy  bool   // IP is the address of a proxy, so the holder's network is unknown
	Proved bool   // the e-mail address is confirmed, or an identity provider is linked
}

// NewBook is a book to create for an account. It gets no free credit if there was a grant for AddressHash after
// Since, or if there were NetworkLimit grants for NetworkHash, which may be empty.
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

// Caps limit the spending per UTC day and month. Keys limits what calls with a project key alone spend per UTC day;
// only projects have it. A nil cap sets no limit. Version counts the changes and starts at 0.
type Caps struct {
	Day, Month, Keys *Amount
	Version          int64
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
	AudioIn, AudioCached, AudioOut               int64
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
