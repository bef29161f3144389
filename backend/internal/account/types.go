package account

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/mail"
)

// Errors that callers branch on.
var (
	ErrEmailTaken     = errors.New("e-mail address has an account")
	ErrBadEmail       = errors.New("not an e-mail address")
	ErrBadPassword    = errors.New("password must have 10 to 200 characters")
	ErrBadCredentials = errors.New("e-mail address or password is wrong")
	ErrNoSession      = errors.New("no such browser session")
	ErrSuspended      = errors.New("account is suspended")
	// ErrNotFound is returned for an unknown account, browser session or identity.
	ErrNotFound = errors.New("no such thing in the account")
	// ErrBadToken is returned for a mailed link that is unknown, used, expired or replaced by a newer one.
	ErrBadToken = errors.New("mailed link is not valid")
	// ErrOthersToken is returned for a mailed link that another account requested; it stays valid there.
	ErrOthersToken = errors.New("mailed link belongs to another account")
	// ErrTooManyMails is returned when the account or the address was sent MaxMails within an hour.
	ErrTooManyMails = errors.New("too many mails within an hour")
	// ErrAddressMailed is ErrTooManyMails for the address alone. Other people may have caused it, so users never see
	// it.
	ErrAddressMailed = fmt.Errorf("%w to the address", ErrTooManyMails)
	// ErrUnverifiedAccount is returned if an account has the address but never verified it.
	ErrUnverifiedAccount = errors.New("account with an address that was never verified")
	// ErrUnverifiedEmail is returned if the provider has not verified the address.
	ErrUnverifiedEmail = errors.New("provider has not verified the e-mail address")
	// ErrNeedsConsent is returned for an identity without an account: the person must first accept the privacy
	// policy.
	ErrNeedsConsent = errors.New("no account yet")
	// ErrIdentityTaken is returned for an identity that is linked to another account.
	ErrIdentityTaken = errors.New("identity belongs to another account")
	// ErrLastWayIn is returned instead of removing the last way to sign in.
	ErrLastWayIn = errors.New("last way to sign in")
	// ErrHasPassword is returned if changing the password requires the current one.
	ErrHasPassword = errors.New("account has a password")
)

// Sign-in methods, as stored with a browser session.
const (
	ByPassword = "password"
	ByPasskey  = "passkey"
	ByMail     = "mail"  // a mailed link
	ByOIDC     = "oidc:" // followed by the provider's id
)

// Lifetimes and limits.
const (
	// SessionLife is how long a browser stays signed in.
	SessionLife = 30 * 24 * time.Hour
	// ResetLife and VerifyLife are how long a mailed link works.
	ResetLife  = time.Hour
	VerifyLife = 24 * time.Hour
	// MaxMails bounds the mails to one account, and to one address, within an hour.
	MaxMails = 3
	// touchEvery is the shortest time between two recorded uses of a browser session.
	touchEvery = 5 * time.Minute
	maxAgent   = 256 // bytes of a stored User-Agent
)

// Account is a person's account. PasswordHash never leaves the backend; it is empty if the account has no password.
type Account struct {
	ID              string
	Email           string
	PasswordHash    string
	Active          bool
	PrivacyAccepted time.Time
	CreatedAt       time.Time
	VerifiedAt      time.Time // zero: the address is not verified
}

// Verified reports whether the address is verified.
func (a Account) Verified() bool { return !a.VerifiedAt.IsZero() }

// HasPassword reports whether the account can be signed in to by password.
func (a Account) HasPassword() bool { return a.PasswordHash != "" }

// Visit is how and from where a browser signed in.
type Visit struct {
	Method, UserAgent, IP string
	// PasswordHash is the hash that the password was checked against, or empty. If it has changed since, the browser
	// is not signed in.
	PasswordHash string
}

// BrowserSession is one browser that is signed in.
type BrowserSession struct {
	ID string
	Visit
	CreatedAt, UsedAt, ExpiresAt time.Time
	// Current reports whether this is the caller's browser.
	Current bool
	// Hash is the session's key in the store.
	Hash string
}

// Identity is a person as reported by a provider.
type Identity struct {
	Provider, Subject, Email string
	EmailVerified            bool
}

// LinkedIdentity is an identity that can sign in to an account.
type LinkedIdentity struct {
	Provider, Subject, Email string
	LinkedAt, UsedAt         time.Time
}

// Access selects ways other than the password to sign in to an account or to act for it.
type Access struct{ Links, Passkeys, Identities bool }

// AllAccess returns an Access that selects everything.
func AllAccess() Access { return Access{Links: true, Passkeys: true, Identities: true} }

// names lists what is selected, for the account's activity log.
func (a Access) names() (names []string) {
	for _, way := range []struct {
		selected bool
		name     string
	}{{a.Links, "linked agents"}, {a.Passkeys, "passkeys"}, {a.Identities, "sign-in providers"}} {
		if way.selected {
			names = append(names, way.name)
		}
	}
	return names
}

// Purposes of mailed links; a link is valid for one purpose only.
const (
	purposeVerify = "verify"
	purposeEmail  = "email" // a new address, set when it is verified
	purposeReset  = "reset"
)

// MailToken is a mailed link as stored. Email is the address it was sent to.
type MailToken struct {
	Hash, AccountID, Purpose, Email string
	CreatedAt, ExpiresAt            time.Time
}

// NewEmail reports whether the link changes the account's address.
func (t MailToken) NewEmail() bool { return t.Purpose == purposeEmail }

// Store is everything the service needs to store.
type Store interface {
	PeopleStore
	SessionStore
	SessionList
	MailStore
	IdentityStore
	DataStore
	GuessStore
	SignUpStore
}

// SignUpStore stores sign-ups whose mailed link has not been used yet.
type SignUpStore interface {
	// InsertSignUp returns ErrTooManyMails if limit sign-ups were stored for the address after since.
	InsertSignUp(ctx context.Context, p PendingSignUp, since time.Time, limit int) error
	// SignUpByToken returns ErrBadToken for an unknown or expired token.
	SignUpByToken(ctx context.Context, hash string, now time.Time) (PendingSignUp, error)
	// FinishSignUp deletes the sign-up and inserts the account. It returns ErrBadToken or ErrEmailTaken.
	FinishSignUp(ctx context.Context, hash string, a Account) error
}

// GuessStore counts wrong passwords.
type GuessStore interface {
	// TakeGuess spends one of limit guesses and returns 0. One guess is restored each interval. If none is left, it
	// returns how long until the next is restored.
	TakeGuess(ctx context.Context, key string, now time.Time, interval time.Duration, limit int) (time.Duration, error)
	// ReturnGuess returns a spent guess.
	ReturnGuess(ctx context.Context, key string, now time.Time, interval time.Duration) error
	// SweepGuesses deletes allowances that are full again.
	SweepGuesses(ctx context.Context, now time.Time) error
}

// PeopleStore stores accounts.
type PeopleStore interface {
	// InsertAccount returns ErrEmailTaken if the address has an account.
	InsertAccount(ctx context.Context, a Account) error
	// AccountByEmail returns ErrBadCredentials if the address has no account.
	AccountByEmail(ctx context.Context, email string) (Account, error)
	// AccountByID returns ErrNotFound for an unknown id.
	AccountByID(ctx context.Context, id string) (Account, error)
	// SetPassword changes the hash from from to to, and deletes all mailed links to set a password and every browser
	// session except keepHash. It returns ErrBadCredentials if the stored hash is no longer from.
	SetPassword(ctx context.Context, from, to, keepHash string, e audit.Entry) error
	// SetActive suspends or restores the entry's account and writes the entry. It reports whether the account
	// changed.
	SetActive(ctx context.Context, active bool, e audit.Entry, t audit.Trace) (bool, error)
}

// SessionStore stores browser sessions by the hash of their secret.
type SessionStore interface {
	// InsertWebSession stores a session of the account. It returns ErrSuspended if the account is not active, and
	// ErrBadCredentials if its password has changed since the visit.
	InsertWebSession(ctx context.Context, accountID string, b BrowserSession) error
	// AccountByWebSession returns ErrNoSession for an unknown or expired session. used is its last recorded use.
	AccountByWebSession(ctx context.Context, hash string, now time.Time) (a Account, used time.Time, err error)
	// DeleteWebSession returns the session's account, or "" for an unknown session.
	DeleteWebSession(ctx context.Context, hash string) (accountID string, err error)
	// TouchWebSession records that the session was used.
	TouchWebSession(ctx context.Context, hash string, now time.Time) error
}

// SessionList lists and ends the browser sessions of an account.
type SessionList interface {
	// WebSessions lists the sessions that have not expired, most recently used first.
	WebSessions(ctx context.Context, accountID string, now time.Time) ([]BrowserSession, error)
	// EndWebSessions ends the session with that id, or all except keepHash if id is empty, and returns how many it
	// ended. It writes the entry if it ended any.
	EndWebSessions(ctx context.Context, id, keepHash string, e audit.Entry) (int, error)
}

// MailStore stores mailed links.
type MailStore interface {
	// InsertMailToken stores a link and deletes the earlier one for the same purpose. It returns ErrTooManyMails or
	// ErrAddressMailed if limit links were sent to the account or to the address after since. With limit 0 nothing is
	// counted.
	InsertMailToken(ctx context.Context, t MailToken, since time.Time, limit int) error
	// MailToken returns ErrBadToken for an unknown or expired link, and ErrSuspended if its account is suspended.
	MailToken(ctx context.Context, hash string, now time.Time) (MailToken, error)
	// ConfirmEmail consumes the link and sets the account's verified address. It returns ErrBadToken or ErrEmailTaken.
	ConfirmEmail(ctx context.Context, t MailToken, now time.Time, e audit.Entry) error
	// ResetPassword consumes the link, sets the password, revokes the access that revoke selects, ends all browser
	// sessions and marks the address verified. An account whose address was not verified before loses all Access.
	ResetPassword(ctx context.Context, t MailToken, passwordHash string, revoke Access, now time.Time, e audit.Entry,
		revoked audit.Trace) error
}

// IdentityStore stores linked identities.
type IdentityStore interface {
	// AccountByIdentity returns ErrNotFound for an identity without an account.
	AccountByIdentity(ctx context.Context, provider, subject string, now time.Time) (Account, error)
	// InsertIdentity reports whether it inserted the identity; it returns false if the account has it already. It
	// returns ErrIdentityTaken if another account has it.
	InsertIdentity(ctx context.Context, id LinkedIdentity, e audit.Entry) (bool, error)
	// InsertAccountWith inserts an account and its identity. It returns ErrEmailTaken or ErrIdentityTaken.
	InsertAccountWith(ctx context.Context, a Account, id LinkedIdentity) error
	Identities(ctx context.Context, accountID string) ([]LinkedIdentity, error)
	// DeleteIdentity returns ErrNotFound or ErrLastWayIn.
	DeleteIdentity(ctx context.Context, provider, subject string, e audit.Entry) error
}

// DataStore exports and deletes all data of an account.
type DataStore interface {
	// ExportAccount calls row with every row of an account, section by section, without secrets.
	ExportAccount(ctx context.Context, accountID string, row func(section string, fields map[string]any) error) error
	// DeleteAccount deletes the account and everything that belongs to it, or returns ErrNotFound. What is left of its
	// credit is booked at that time.
	DeleteAccount(ctx context.Context, accountID string, at time.Time) error
	InsertAudit(ctx context.Context, e audit.Entry) error
}

// Outbox queues mail.
type Outbox interface {
	// Queue never blocks. It returns an error if the queue is full.
	Queue(m mail.Message) error
	// Enabled reports whether a mail server is configured.
	Enabled() bool
}
