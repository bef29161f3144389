package link

import (
	"context"
	"errors"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
)

// State is the stored state of a device code.
type State string

// The stored states.
const (
	Pending  State = "pending"
	Approved State = "approved"
	Denied   State = "denied"
	Redeemed State = "redeemed"
)

// TierFreeAccount is the tier of all linked accounts.
const TierFreeAccount = "free_account"

// Errors that callers check for.
var (
	// ErrUnknown is returned for a code or token that was never issued, and for a redeemed code.
	ErrUnknown = errors.New("unknown code")
	// ErrExpired is returned for a code that has expired.
	ErrExpired = errors.New("code expired")
	// ErrDenied is returned if the user declined.
	ErrDenied = errors.New("code denied")
	// ErrNotPending is returned for a code that was already decided or has expired.
	ErrNotPending = errors.New("code is not pending")
	// ErrDuplicate is returned by the store for a hash that is already stored.
	ErrDuplicate = errors.New("duplicate code")
	// ErrRevoked is returned for a revoked token.
	ErrRevoked = errors.New("token revoked")
	// ErrTokenExpired is returned for a legacy token that has expired.
	ErrTokenExpired = errors.New("token expired")
)

// Requester is a client's description of itself when it requests a link. IP is the address from which the request came.
type Requester struct{ Host, OS, Client, IP string }

// Code is a stored device code.
type Code struct {
	DeviceHash string
	UserHash   string
	State      State
	AccountID  string // set once the code is approved or denied by an account
	Requester  Requester
	CreatedAt  time.Time
	ExpiresAt  time.Time
	Interval   time.Duration
}

// Progress holds the fields of a code that a poll needs.
type Progress struct {
	State     State
	ExpiresAt time.Time
	Interval  time.Duration
}

// Issued is a new code, as returned to the requester. Both codes are secrets.
type Issued struct {
	DeviceCode   string
	UserCode     string
	ExpiresIn    time.Duration
	PollInterval time.Duration
}

// Link is the stored link between an install and an account.
type Link struct {
	ID        string
	AccountID string
	TokenHash string
	Requester Requester
	LinkedAt  time.Time
	ExpiresAt time.Time // zero if it never expires
	RevokedAt time.Time // zero if not revoked
	UsedAt    time.Time // zero if never used
	// LastUsedAt and LastIP describe a recent call, made at most touchEvery before the latest one.
	LastUsedAt time.Time
	LastIP     string
	Active     bool // whether the account is active
}

// Created returns the audit entry for a new link, which the account holder has approved.
func (l Link) Created() audit.Entry {
	name := audit.AgentName(l.Requester.Host, l.Requester.Client)
	return audit.New(l.LinkedAt, l.AccountID, audit.Person(), "link.created", "", name)
}

// Principal is the owner of a token.
type Principal struct {
	AccountID string
	LinkID    string
	Tier      string
	LinkedAt  time.Time
	ExpiresAt time.Time // zero if it never expires
}

// Token is a newly issued token. AuthToken is a secret.
type Token struct {
	AuthToken string
	Principal
}

// Poll is the answer to a poll. The code is pending while Token is nil.
type Poll struct {
	Token    *Token
	Interval time.Duration
}

// CodeStore stores device codes. Every change also writes its line of the linking trail.
type CodeStore interface {
	// InsertCode returns ErrDuplicate if either hash is already stored.
	InsertCode(ctx context.Context, code Code, t audit.Trace) error
	// Progress returns all fields that a poll of a pending code needs. It returns ErrUnknown for an unknown code.
	Progress(ctx context.Context, deviceHash string) (Progress, error)
	// CodeByUser returns ErrUnknown for an unknown code.
	CodeByUser(ctx context.Context, userHash string) (Code, error)
	// Decide changes the state of a code that is pending and not expired at now. It reports whether it changed the
	// state.
	Decide(ctx context.Context, userHash string, to State, accountID string, now time.Time, t audit.Trace) (bool, error)
	// Cancel denies a pending or approved code, or revokes the link of a redeemed code if the link was never used. It
	// changes nothing if the code was already cancelled, and returns ErrUnknown if there is nothing to cancel.
	Cancel(ctx context.Context, deviceHash string, now time.Time, t audit.Trace) error
	// RaiseInterval stores a longer poll interval for a pending code.
	RaiseInterval(ctx context.Context, deviceHash string, interval time.Duration) error
}

// TokenStore stores links.
type TokenStore interface {
	// Redeem deletes an approved code that expires at or after deadline and whose account is active, inserts the link
	// with the code's account and requester, and writes the link's audit entry, in one transaction. It returns the
	// complete link, or ErrUnknown if there is no such code.
	Redeem(ctx context.Context, deviceHash string, deadline time.Time, link Link, t audit.Trace) (Link, error)
	// MarkRepolled records that a redeemed code was polled again.
	MarkRepolled(ctx context.Context, deviceHash string, now time.Time) error
	// LinkByToken returns ErrUnknown for an unknown token.
	LinkByToken(ctx context.Context, tokenHash string) (Link, error)
	// MarkUsed records a use of a token with the caller's address, which may be empty. It returns ErrRevoked if the
	// link was revoked after it was read, so that a first use and the sweep of unused tokens never both succeed.
	MarkUsed(ctx context.Context, linkID, ip string, now time.Time) error
	// Sweep revokes unused tokens whose code was polled again before repolled, and deletes codes that expired before
	// expired. It returns the number of revoked tokens.
	Sweep(ctx context.Context, now, repolled, expired time.Time, t audit.Trace) (revoked int64, err error)
}
