package link

import (
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

// Requester is a client's description of itself when it requests a link. IP is the address that sent the request.
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

// Poll is the response to a poll. The code is pending while Token is nil.
type Poll struct {
	Token    *Token
	Interval time.Duration
}
