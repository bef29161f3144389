// Package credit is the ledger of the managed gateway. It records the prepaid money of accounts, in whole micro-USD,
// and is independent of models and HTTP. Money is set aside before a call (Hold) and then charged or returned (Settle,
// Release). A balance therefore never falls below zero, and a call is never charged more than its hold.
package credit

import (
	"errors"
	"fmt"
	"time"
)

// HoldRequest is a request to set money aside for one call.
type HoldRequest struct {
	Account string
	Project string // the hold counts toward this project's caps; the ledger may not know the project
	Amount  Amount // upper bound of the call's cost; 0 creates no hold
	// ByKey is set for a call with a project key alone, without attestation or a simulator session. The hold also counts
	// toward the project's daily allowance for such calls.
	ByKey bool
}

// Hold is money set aside for one call. The process that serves the call renews the lease while the call runs. After
// the lease expires, the next sweep of any process releases the hold.
type Hold struct {
	ID         string
	Account    string
	Project    string
	Amount     Amount
	LeaseUntil time.Time
	ByKey      bool
}

// Call is the ledger's record of a call. It consists of numbers and words from fixed sets, and contains no content,
// user or network address.
//
// Account and Project are taken from the hold, if there is one.
type Call struct {
	Account    string
	Project    string
	Model      string
	Kind       string // chat, responses, messages or realtime
	Source     string // credit, own_key, local or script
	Outcome    string // ok, failed, cancelled, or the code of a refusal
	TextIn     int64  // input tokens that were not read from a cache
	TextCached int64  // input tokens read from a cache
	TextOut    int64  // output tokens
	// AudioIn, AudioCached and AudioOut count tokens of sound like the fields for text, in realtime sessions.
	AudioIn, AudioCached, AudioOut int64
	Estimated                      bool // the counts are the gateway's estimates, because the provider sent none
	Duration                       time.Duration
}

// Errors that callers check for.
var (
	// ErrNoAccount is returned for an account that does not exist.
	ErrNoAccount = errors.New("no such account")
	// ErrNoHold is returned for an unknown hold: it never existed, its account was deleted, or it ended days ago.
	ErrNoHold = errors.New("no such hold")
	// ErrHoldEnded is returned when a hold is renewed after it was settled, released or expired.
	ErrHoldEnded = errors.New("hold has ended")
	// ErrReferenceUsed is returned for a reference that another transfer has used.
	ErrReferenceUsed = errors.New("reference was used for another transfer")
	// ErrBadAmount is returned for an amount that is not positive or is too large to book.
	ErrBadAmount = errors.New("the amount must be above 0 and at most 1,000,000 USD")
	// ErrNoBook is returned by a Store for an account without a balance. The ledger then creates one.
	ErrNoBook = errors.New("account has no balance yet")
)

// NoCredit reports that the account's balance does not cover a hold. Held is the amount held by calls in flight;
// Available does not include it.
type NoCredit struct {
	Needed, Available, Held Amount
	TopUp                   string // page where the account's owner adds credit; "" if there is none
}

// Code returns the error code that apps receive.
func (*NoCredit) Code() string { return "no_credit" }

func (e *NoCredit) Error() string {
	return fmt.Sprintf("no credit: the call needs up to %s USD and %s USD is available", e.Needed, e.Available)
}

// Reserved reports that the balance or a cap would cover a hold, but calls in flight hold too much of it. A later
// attempt can succeed.
type Reserved struct {
	Needed, Available, Held Amount
	Cap, Of                 string // same as in CapReached; empty for the balance
}

// Code returns the error code that apps receive.
func (*Reserved) Code() string { return "credit_reserved" }

func (e *Reserved) Error() string {
	return fmt.Sprintf("credit reserved: the call needs up to %s USD, %s USD is available and calls in flight hold %s USD",
		e.Needed, e.Available, e.Held)
}

// Unproved reports that the account cannot spend its credit before its e-mail address is confirmed or an identity
// provider is linked.
type Unproved struct{}

// Code returns the error code that apps receive.
func (*Unproved) Code() string { return "credit_locked" }

func (e *Unproved) Error() string {
	return "credit locked: confirm the account's e-mail address or link an identity provider first"
}

// The periods of a cap, and the scopes of a cap. CapKeys is the daily allowance of a project for calls with a project
// key alone.
const (
	CapDay    = "day"
	CapMonth  = "month"
	CapKeys   = "keys"
	OfProject = "project"
	OfAccount = "account"
)

// AttestationRequired reports that a hold for a call with a project key alone would exceed the project's daily
// allowance for such calls.
type AttestationRequired struct {
	Needed   Amount // if it exceeds Limit, no day's allowance covers the call
	Limit    Amount
	Used     Amount // amount spent and held by such calls on this day
	ResetsAt time.Time
}

// Code returns the error code that apps receive.
func (*AttestationRequired) Code() string { return "attestation_required" }

func (e *AttestationRequired) Error() string {
	return fmt.Sprintf("attestation required: %s USD of the daily allowance of %s USD for project keys is used; "+
		"it resets at %s", e.Used, e.Limit, e.ResetsAt.UTC().Format(time.RFC3339))
}

// NewProjectAllowance is the daily allowance of a new project for calls with a project key alone.
const NewProjectAllowance = USD / 2

// Values of Call.Source and of Call.Outcome. Any other outcome is the code of a refusal.
const (
	SourceCredit     = "credit"
	SourceOwnKey     = "own_key"
	SourceLocal      = "local"
	SourceScript     = "script"
	OutcomeOK        = "ok"
	OutcomeFailed    = "failed"
	OutcomeCancelled = "cancelled"
)

// CapReached reports that a hold would exceed a spending cap.
type CapReached struct {
	Cap      string // CapDay or CapMonth, in UTC
	Of       string // OfProject or OfAccount
	Limit    Amount
	Used     Amount // amount spent and held in this period
	ResetsAt time.Time
}

// Code returns the error code that apps receive.
func (*CapReached) Code() string { return "cap_reached" }

func (e *CapReached) Error() string {
	return fmt.Sprintf("cap reached: %s USD of the %s's %s cap of %s USD is used; it resets at %s",
		e.Used, e.Of, e.Cap, e.Limit, e.ResetsAt.UTC().Format(time.RFC3339))
}
