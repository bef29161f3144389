// Package credit is the ledger of the managed gateway: prepaid money of accounts in whole micro-USD. It knows neither
// models nor HTTP. Money is set aside before a call (Hold) and charged or given back after it (Settle, Release), so a
// balance never falls below zero and a call never costs more than its hold.
package credit

import (
	"errors"
	"fmt"
	"time"
)

// HoldRequest asks to set money aside for one call.
type HoldRequest struct {
	Account string
	Project string // counts towards the caps of this project; the ledger does not need to know it
	Amount  Amount // upper bound of the call's cost; 0 makes no hold
}

// Hold is money set aside for one call. Its process renews the lease while the call runs; a hold whose lease has run
// out is given back by the sweep of any process.
type Hold struct {
	ID         string
	Account    string
	Project    string
	Amount     Amount
	LeaseUntil time.Time
}

// Call is the ledger's record of a call: numbers, and words of fixed sets. It holds no content, user or address.
//
// Account and Project are taken from the hold if there is one.
type Call struct {
	Account    string
	Project    string
	Model      string
	Kind       string // chat, responses or messages
	Source     string // credit, own_key, local or script
	Outcome    string // ok, failed, cancelled, or the code of a refusal
	TextIn     int64  // input tokens that were not read from a cache
	TextCached int64  // input tokens read from a cache
	TextOut    int64  // output tokens
	Estimated  bool   // the counts are the gateway's estimate, since the provider sent none
	Duration   time.Duration
}

// Errors that callers branch on.
var (
	// ErrNoAccount is returned for an account that does not exist.
	ErrNoAccount = errors.New("no such account")
	// ErrNoHold is returned for an unknown hold: it was never made, its account was deleted, or it ended days ago.
	ErrNoHold = errors.New("no such hold")
	// ErrHoldEnded is returned when a hold is renewed that was settled, released or given back.
	ErrHoldEnded = errors.New("hold has ended")
	// ErrReferenceUsed is returned for a reference that another transfer has used.
	ErrReferenceUsed = errors.New("reference was used for another transfer")
	// ErrBadAmount is returned for an amount that is not above 0 or too large to book.
	ErrBadAmount = errors.New("not an amount above 0 and of at most 1,000,000 USD")
	// ErrNoBook is returned by a Store for an account that has no balance yet. The ledger then opens it.
	ErrNoBook = errors.New("account has no balance yet")
)

// NoCredit reports that the account's balance does not cover a hold. Calls in flight hold Held beside what is
// available.
type NoCredit struct {
	Needed, Available, Held Amount
	TopUp                   string // where the account's owner pays in; "" where nobody can
}

// Code names the refusal to apps.
func (*NoCredit) Code() string { return "no_credit" }

func (e *NoCredit) Error() string {
	return fmt.Sprintf("no credit: the call needs up to %s USD and %s USD are available", e.Needed, e.Available)
}

// Reserved reports that the balance or a cap covers a hold but calls in flight hold too much of it. A later attempt can
// succeed.
type Reserved struct {
	Needed, Available, Held Amount
	Cap, Of                 string // as in CapReached; "" for the balance
}

// Code names the refusal to apps.
func (*Reserved) Code() string { return "credit_reserved" }

func (e *Reserved) Error() string {
	return fmt.Sprintf("credit reserved: the call needs up to %s USD, %s USD are available and calls in flight hold %s USD",
		e.Needed, e.Available, e.Held)
}

// Unproved reports that the account's credit cannot be spent before its mail address is confirmed or an identity
// provider is linked.
type Unproved struct{}

// Code names the refusal to apps.
func (*Unproved) Code() string { return "credit_locked" }

func (e *Unproved) Error() string {
	return "credit locked: confirm the account's mail address or link an identity provider first"
}

// The periods of a cap, and the things that it limits.
const (
	CapDay    = "day"
	CapMonth  = "month"
	OfProject = "project"
	OfAccount = "account"
)

// Words of a Call that the ledger itself uses: who paid, and how it ended. Any other outcome is a refusal's code.
const (
	SourceCredit     = "credit"
	SourceOwnKey     = "own_key"
	SourceLocal      = "local"
	SourceScript     = "script"
	OutcomeOK        = "ok"
	OutcomeFailed    = "failed"
	OutcomeCancelled = "cancelled"
)

// CapReached reports that a hold would go beyond a spending cap.
type CapReached struct {
	Cap      string // CapDay or CapMonth, in UTC
	Of       string // OfProject or OfAccount
	Limit    Amount
	Used     Amount // spent and held of this period
	ResetsAt time.Time
}

// Code names the refusal to apps.
func (*CapReached) Code() string { return "cap_reached" }

func (e *CapReached) Error() string {
	return fmt.Sprintf("cap reached: %s USD of the %s's %s cap of %s USD are used; it resets at %s",
		e.Used, e.Of, e.Cap, e.Limit, e.ResetsAt.UTC().Format(time.RFC3339))
}
