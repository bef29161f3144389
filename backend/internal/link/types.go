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
	// ErrUnknown: never issued, already redeemed, or no such token.
	ErrUnknown = errors.New("unknown code")
	// ErrExpired: the window elapsed.
	ErrExpired = errors.New("code expired")
	// ErrDenied: the person declined.
	ErrDenied = errors.New("code denied")
	// ErrNotPending: the code can no longer be approved or denied.
	ErrNotPending = errors.New("code is not pending")
	// ErrDuplicate is the store's: the hash is taken.
	ErrDuplicate = errors.New("duplicate code")
	// ErrRevoked: the token was revoked.
	ErrRevoked = errors.New("token revoked")
	// ErrTokenExpired: a legacy token's lifetime is over.
	ErrTokenExpired = errors.New("token expired")
)

// Requester is who asks for a link, as the requester itself says; IP is the address the request came from.
type Requester struct{ Host, OS, Client, IP string }

// Code is a device code as stored.
type Code struct {
	DeviceHash string
	UserHash   string
	State      State
	AccountID  string // set once decided by an account
	Requester  Requester
	CreatedAt  time.Time
	ExpiresAt  time.Time
	Interval   time.Duration
}

// Progress is what a poll needs to know of a code.
type Progress struct {
	State     State
	ExpiresAt time.Time
	Interval  time.Duration
}

// Issued is a code as the requester gets it. Both codes are secrets.
type Issued struct {
	DeviceCode   string
	UserCode     string
	ExpiresIn    time.Duration
	PollInterval time.Duration
}

// Link is one linked install as stored: a token's hash and its life.
type Link struct {
	ID        string
	AccountID string
	TokenHash string
	Requester Requester
	LinkedAt  time.Time
	ExpiresAt time.Time // zero: never
	RevokedAt time.Time // zero: live
	UsedAt    time.Time // zero: no call was made with it yet
	// LastUsedAt and LastIP are of a recent call, up to touchEvery before the last.
	LastUsedAt time.Time
	LastIP     string
	Active     bool // the account is active
}

// Principal is who a token speaks for.
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

// Poll is the answer to a poll: pending while Token is nil.
type Poll struct {
	Token    *Token
	Interval time.Duration
}

// CodeStore keeps device codes. Every change takes the line that it leaves in the trail.
type CodeStore interface {
	// InsertCode answers ErrDuplicate when either hash is taken.
	InsertCode(ctx context.Context, code Code, t audit.Trace) error
	// Progress is the one read of a pending poll; it answers ErrUnknown.
	Progress(ctx context.Context, deviceHash string) (Progress, error)
	// CodeByUser answers ErrUnknown.
	CodeByUser(ctx context.Context, userHash string) (Code, error)
	// Decide moves a code that is pending and not expired at now; false when there was none.
	Decide(ctx context.Context, userHash string, to State, accountID string, now time.Time, t audit.Trace) (bool, error)
	// RaiseInterval stores a longer interval of a pending code.
	RaiseInterval(ctx context.Context, deviceHash string, interval time.Duration) error
}

// TokenStore keeps links.
type TokenStore interface {
	// Redeem consumes an approved code that expires at or after deadline and whose account is active, and stores the
	// link with the code's account and requester, in one transaction; it gives the whole link. ErrUnknown when there was
	// no such code.
	Redeem(ctx context.Context, deviceHash string, deadline time.Time, link Link, t audit.Trace) (Link, error)
	// MarkRepolled notes that a redeemed code was polled again.
	MarkRepolled(ctx context.Context, deviceHash string, now time.Time) error
	// LinkByToken answers ErrUnknown.
	LinkByToken(ctx context.Context, tokenHash string) (Link, error)
	// MarkUsed notes the use of a token and where the call came from, which may be empty. ErrRevoked when it was revoked
	// since it was read: a first use and the sweep of what nobody received never both win.
	MarkUsed(ctx context.Context, linkID, ip string, now time.Time) error
	// Sweep revokes unused tokens whose code was polled again before repolled, and deletes codes that expired before
	// expired. It tells how many tokens it revoked.
	Sweep(ctx context.Context, now, repolled, expired time.Time, t audit.Trace) (revoked int64, err error)
}
