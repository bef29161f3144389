package account

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/mail"
	"github.com/service-dev/service/internal/passwords"
)

// Errors that callers check for.
var (
	ErrEmailTaken     = errors.New("e-mail address already has an account")
	ErrBadEmail       = errors.New("not an e-mail address")
	ErrBadPassword    = passwords.ErrLength
	ErrBadCredentials = errors.New("e-mail address or password is wrong")
	ErrNoSession      = errors.New("no such browser session")
	ErrSuspended      = errors.New("account is suspended")
	// ErrNotFound is returned for an unknown account, browser session or identity.
	ErrNotFound = errors.New("no such account, browser session or identity")
	// ErrBadToken is returned for a mailed link that is unknown, used, expired or replaced by a newer one.
	ErrBadToken = errors.New("mailed link is not valid")
	// ErrOthersToken is returned for a mailed link that another account requested. That account can still use the link.
	ErrOthersToken = errors.New("mailed link was requested by another account")
	// ErrTooManyMails is returned if MaxMails were already sent for the account or to the address within the last hour.
	ErrTooManyMails = errors.New("too many mails within an hour")
	// ErrAddressMailed is ErrTooManyMails caused by the address alone. Other people may have caused it, so it is never
	// shown to users.
	ErrAddressMailed = fmt.Errorf("%w to the address", ErrTooManyMails)
	// ErrUnverifiedAccount is returned if an account has the address but has never verified it.
	ErrUnverifiedAccount = errors.New("account's e-mail address was never verified")
	// ErrUnverifiedEmail is returned if the provider has not verified the address.
	ErrUnverifiedEmail = errors.New("provider has not verified the e-mail address")
	// ErrNeedsConsent is returned for an identity without an account: the user must first accept the privacy policy.
	ErrNeedsConsent = errors.New("no account for this identity yet")
	// ErrIdentityTaken is returned for an identity that is linked to another account.
	ErrIdentityTaken = errors.New("identity is linked to another account")
	// ErrLastWayIn is returned when a call would remove the account's last way to sign in.
	ErrLastWayIn = errors.New("cannot remove the last way to sign in")
	// ErrHasPassword is returned if the account already has a password, so that changing it requires the current one.
	ErrHasPassword = errors.New("account already has a password")
)

// Sign-in methods, stored with each browser session.
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
	// ResetLife and VerifyLife are how long mailed links are valid.
	ResetLife  = time.Hour
	VerifyLife = 24 * time.Hour
	// MaxMails limits the mails per hour for one account and to one address.
	MaxMails = 3
	// touchEvery is the minimum time between two recorded uses of a browser session.
	touchEvery = 5 * time.Minute
	maxAgent   = 256 // maximum bytes of a stored User-Agent
)

// Account is a user account. PasswordHash never leaves the backend; it is empty if the account has no password.
type Account struct {
	ID              string
	Email           string
	PasswordHash    string
	Active          bool
	PrivacyAccepted time.Time
	CreatedAt       time.Time
	VerifiedAt      time.Time // zero if the address is not verified
}

// Verified reports whether the address is verified.
func (a Account) Verified() bool { return !a.VerifiedAt.IsZero() }

// HasPassword reports whether the account has a password.
func (a Account) HasPassword() bool { return a.PasswordHash != "" }

// Visit describes how and from where a browser signed in.
type Visit struct {
	Method, UserAgent, IP string
	// BehindProxy is set if IP is the address of a proxy, not of the browser.
	BehindProxy bool
	// PasswordHash is the hash that the password was checked against, or empty. If it has changed since the check, the
	// browser is not signed in.
	PasswordHash string
	// Browser describes the browser in the account's activity, e.g. "Firefox on Linux". It is not stored otherwise.
	Browser string
}

// BrowserSession is a signed-in browser.
type BrowserSession struct {
	ID string
	Visit
	CreatedAt, UsedAt, ExpiresAt time.Time
	// Current reports whether this is the caller's browser.
	Current bool
	// Hash is the session's key in the store.
	Hash string
}

// Identity describes a user as reported by a provider.
type Identity struct {
	Provider, Subject, Email string
	EmailVerified            bool
}

// LinkedIdentity is an identity that can sign in to an account.
type LinkedIdentity struct {
	Provider, Subject, Email string
	LinkedAt, UsedAt         time.Time
}

// Access selects ways, other than the password, to sign in to an account or to act on its behalf.
type Access struct{ Links, Passkeys, Identities bool }

// AllAccess returns an Access with every way selected.
func AllAccess() Access { return Access{Links: true, Passkeys: true, Identities: true} }

// names lists the selected ways, for the account's activity log.
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

// Purposes of mailed links. A link is valid only for its purpose.
const (
	purposeVerify = "verify"
	purposeEmail  = "email" // a new address, set once it is verified
	purposeReset  = "reset"
)

// MailToken is a stored mailed link. Email is the address it was sent to.
type MailToken struct {
	Hash, AccountID, Purpose, Email string
	CreatedAt, ExpiresAt            time.Time
}

// NewEmail reports whether the link changes the account's address.
func (t MailToken) NewEmail() bool { return t.Purpose == purposeEmail }

// Store combines the stores that the service needs.
type Store interface {
	PeopleStore
	SessionStore
	SessionList
	MailStore
	IdentityStore
	DataStore
	GuessStore
	SignUpStore
	LocalStore
}

// SignUpStore stores sign-ups whose mailed link has not been used yet.
type SignUpStore interface {
	// InsertSignUp returns ErrTooManyMails if limit sign-ups were stored for the address after since.
	InsertSignUp(ctx context.Context, p PendingSignUp, since time.Time, limit int) error
	// SignUpByToken returns ErrBadToken for an unknown or expired token.
	SignUpByToken(ctx context.Context, hash string, now time.Time) (PendingSignUp, error)
	// FinishSignUp deletes the sign-up, inserts the account and writes its audit entry. It returns ErrBadToken or
	// ErrEmailTaken.
	FinishSignUp(ctx context.Context, hash string, a Account) error
}

// GuessStore counts wrong passwords per key.
type GuessStore interface {
	// TakeGuess spends one of limit guesses and returns 0. Every interval restores one guess. If none is left, TakeGuess
	// returns the time until the next one is restored.
	TakeGuess(ctx context.Context, key string, now time.Time, interval time.Duration, limit int) (time.Duration, error)
	// ReturnGuess restores a guess that TakeGuess spent.
	ReturnGuess(ctx context.Context, key string, now time.Time, interval time.Duration) error
	// SweepGuesses deletes the allowances whose guesses are all restored.
	SweepGuesses(ctx context.Context, now time.Time) error
}

// PeopleStore stores accounts.
type PeopleStore interface {
	// InsertAccount also writes the account's audit entry. It returns ErrEmailTaken if the address has an account.
	InsertAccount(ctx context.Context, a Account) error
	// AccountByEmail returns ErrBadCredentials if the address has no account.
	AccountByEmail(ctx context.Context, email string) (Account, error)
	// AccountByID returns ErrNotFound for an unknown id.
	AccountByID(ctx context.Context, id string) (Account, error)
	// SetPassword replaces the password hash from with the hash to. It deletes all mailed links that set a password and
	// every browser session except keepHash. It returns ErrBadCredentials if the stored hash is no longer from.
	SetPassword(ctx context.Context, from, to, keepHash string, e audit.Entry) error
	// SetActive suspends or restores the account of the entry and writes the entry. It reports whether the account's
	// state changed.
	SetActive(ctx context.Context, active bool, e audit.Entry, t audit.Trace) (bool, error)
}

// SessionStore stores browser sessions by the hash of their secret.
type SessionStore interface {
	// InsertWebSession stores a session of the account and writes its audit entry. It returns ErrSuspended if the
	// account is not active, and ErrBadCredentials if the password has changed since the visit.
	InsertWebSession(ctx context.Context, accountID string, b BrowserSession) error
	// AccountByWebSession returns ErrNoSession for an unknown or expired session. used is the last recorded use of the
	// session.
	AccountByWebSession(ctx context.Context, hash string, now time.Time) (a Account, used time.Time, err error)
	// DeleteWebSession deletes the session and writes the entry for its account. It returns the ID of that account, or
	// "" for an unknown session.
	DeleteWebSession(ctx context.Context, hash string, e audit.Entry) (accountID string, err error)
	// TouchWebSession records that the session was used.
	TouchWebSession(ctx context.Context, hash string, now time.Time) error
}

// SessionList lists and ends the browser sessions of an account.
type SessionList interface {
	// WebSessions lists the sessions that have not expired, most recently used first.
	WebSessions(ctx context.Context, accountID string, now time.Time) ([]BrowserSession, error)
	// EndWebSessions ends the session with that ID, or every session except keepHash if id is empty. It returns the
	// number of sessions ended and, unless that is 0, writes the entry.
	EndWebSessions(ctx context.Context, id, keepHash string, e audit.Entry) (int, error)
}

// MailStore stores mailed links.
type MailStore interface {
	// InsertMailToken stores a link and deletes the earlier link for the same purpose. It returns ErrTooManyMails or
	// ErrAddressMailed if limit links were created for the account or sent to the address after since. A limit of 0
	// disables both checks.
	InsertMailToken(ctx context.Context, t MailToken, since time.Time, limit int) error
	// MailToken returns ErrBadToken for an unknown or expired link, and ErrSuspended if its account is suspended.
	MailToken(ctx context.Context, hash string, now time.Time) (MailToken, error)
	// ConfirmEmail consumes the link and stores its address as the account's verified address. It returns ErrBadToken or
	// ErrEmailTaken.
	ConfirmEmail(ctx context.Context, t MailToken, now time.Time, e audit.Entry) error
	// ResetPassword consumes the link, sets the password, revokes the access that revoke selects, ends all browser
	// sessions and marks the address as verified. If the address was unverified, all Access is revoked.
	ResetPassword(ctx context.Context, t MailToken, passwordHash string, revoke Access, now time.Time, e audit.Entry,
		revoked audit.Trace) error
}

// IdentityStore stores linked identities.
type IdentityStore interface {
	// AccountByIdentity returns ErrNotFound if no account is linked to the identity.
	AccountByIdentity(ctx context.Context, provider, subject string, now time.Time) (Account, error)
	// InsertIdentity reports whether it inserted the identity; it returns false if the account has it already. It
	// returns ErrIdentityTaken if another account has it.
	InsertIdentity(ctx context.Context, id LinkedIdentity, e audit.Entry) (bool, error)
	// InsertAccountWith inserts an account and its identity, and writes the account's audit entry. It returns
	// ErrEmailTaken or ErrIdentityTaken.
	InsertAccountWith(ctx context.Context, a Account, id LinkedIdentity) error
	Identities(ctx context.Context, accountID string) ([]LinkedIdentity, error)
	// DeleteIdentity also ends the browser sessions that the provider opened, except keepHash. It returns
	// ErrNotFound, or ErrLastWayIn for the account's last way to sign in.
	DeleteIdentity(ctx context.Context, provider, subject, keepHash string, e audit.Entry) error
}

// DataStore exports and deletes all data of an account.
type DataStore interface {
	// ExportAccount calls row with every row of an account, section by section, without secrets.
	ExportAccount(ctx context.Context, accountID string, row func(section string, fields map[string]any) error) error
	// DeleteAccount deletes the account and everything that belongs to it, or returns ErrNotFound. It books the
	// account's remaining credit as of at.
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
