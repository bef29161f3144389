package link

import (
	"context"
	"errors"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
)

// State is a stored state of a device code.
type State string

// The stored states.
const (
	Pending  State = "pending"
	Approved State = "approved"
	Denied   State = "denied"
	Redeemed State = "redeemed"
)

// TierFreeAccount is the tier of every linked account.
const TierFreeAccount = "free_account"

// Errors that callers branch on.
var (
	// ErrUnknown is returned for a code or token that was never issued, and for a redeemed code.
	ErrUnknown = errors.New("unknown code")
	// ErrExpired is returned for a code whose validity has ended.
	ErrExpired = errors.New("code expired")
	// ErrDenied is returned if the person declined.
	ErrDenied = errors.New("code denied")
	// ErrNotPending is returned for a code that can no longer be approved or denied.
	ErrNotPending = errors.New("code is not pending")
	// ErrDuplicate is returned by the store for a hash that is already stored.
	ErrDuplicate = errors.New("duplicate code")
	// ErrRevoked is returned for a revoked token.
	ErrRevoked = errors.New("token revoked")
	// ErrTokenExpired is returned for a legacy token that has expired.
	ErrTokenExpired = errors.New("token expired")
)

// Requester describes the client that requests a link, as it describes itself. IP is the address of its request.
type Requester struct{ Host, OS, Client, IP string }

// Code is a device code as stored.
type Code struct {
	DeviceHash string
	UserHash   string
	State      State
	AccountID  string // set once an account has decided
	Requester  Requester
	CreatedAt  time.Time
	ExpiresAt  time.Time
	Interval   time.Duration
}

// Progress is the part of a code that a poll reads.
type Progress struct {
	State     State
	ExpiresAt time.Time
	Interval  time.Duration
}

// Issued is a code as returned to the requester. Both codes are secrets.
type Issued struct {
	DeviceCode   string
	UserCode     string
	ExpiresIn    time.Duration
	PollInterval time.Duration
}

// Link is a linked install as stored.
type Link struct {
	ID        string
	AccountID string
	TokenHash string
	Requester Requester
	LinkedAt  time.Time
	ExpiresAt time.Time // zero: never
	RevokedAt time.Time // zero: live
	UsedAt    time.Time // zero: never used
	// LastUsedAt and LastIP describe a recent call, at most touchEvery before the last one.
	LastUsedAt time.Time
	LastIP     string
	Active     bool // whether the account is active
}

// Principal is the owner of a token.
type Principal struct {
	AccountID string
	LinkID    string
	Tier      string
	LinkedAt  time.Time
	ExpiresAt time.Time // zero: never
}

// Token is a minted token. AuthToken is a secret.
type Token struct {
	AuthToken string
	Principal
}

// Poll is the answer to a poll. It is pending while Token is nil.
type Poll struct {
	Token    *Token
	Interval time.Duration
}

// CodeStore stores device codes. Every change also writes its trail line.
type CodeStore interface {
	// InsertCode returns ErrDuplicate if either hash is taken.
	InsertCode(ctx context.Context, code Code, t audit.Trace) error
	// Progress is all that the poll of a pending code reads. It returns ErrUnknown for an unknown code.
	Progress(ctx context.Context, deviceHash string) (Progress, error)
	// CodeByUser returns ErrUnknown for an unknown code.
	CodeByUser(ctx context.Context, userHash string) (Code, error)
	// Decide changes the state of a code that is pending and not expired at now, and reports whether it did.
	Decide(ctx context.Context, userHash string, to State, accountID string, now time.Time, t audit.Trace) (bool, error)
	// Cancel denies a pending or approved code, or revokes the link of a redeemed code if it was never used. It
	// changes nothing if that happened before, and returns ErrUnknown if there was nothing to cancel.
	Cancel(ctx context.Context, deviceHash string, now time.Time, t audit.Trace) error
	// RaiseInterval stores a longer poll interval for a pending code.
	RaiseInterval(ctx context.Context, deviceHash string, interval time.Duration) error
}

// TokenStore stores links.
type TokenStore interface {
	// Redeem deletes an approved code that expires at or after deadline and whose account is active, and inserts the
	// link with the code's account and requester, in one transaction. It returns the complete link, or ErrUnknown if
	// there is no such code.
	Redeem(ctx context.Context, deviceHash string, deadline time.Time, link Link, t audit.Trace) (Link, error)
	// MarkRepolled records that a redeemed code was polled again.
	MarkRepolled(ctx context.Context, deviceHash string, now time.Time) error
	// LinkByToken returns ErrUnknown for an unknown token.
	LinkByToken(ctx context.Context, tokenHash string) (Link, error)
	// MarkUsed records the use of a token and the address of the call, which may be empty. It returns ErrRevoked if
	// the link was revoked after it was read: a first use and the sweep of unclaimed tokens never both succeed.
	MarkUsed(ctx context.Context, linkID, ip string, now time.Time) error
	// Sweep revokes unused tokens whose code was polled again before repolled, and deletes codes that expired before
	// expired. It returns how many tokens it revoked.
	Sweep(ctx context.Context, now, repolled, expired time.Time, t audit.Trace) (revoked int64, err error)
}
