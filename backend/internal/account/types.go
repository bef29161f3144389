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
	// ErrNotFound: no such account, browser session or identity.
	ErrNotFound = errors.New("no such thing in the account")
	// ErrBadToken: a mailed link that is unknown, used or overdue, or that a newer one has replaced.
	ErrBadToken = errors.New("mailed link is not valid")
	// ErrOthersToken: a mailed link that another account asked for; it goes on working there.
	ErrOthersToken = errors.New("mailed link belongs to another account")
	// ErrTooManyMails: MaxMails went to the account or to the address within an hour.
	ErrTooManyMails = errors.New("too many mails within an hour")
	// ErrAddressMailed is ErrTooManyMails by the address alone: others may have had them sent, so who asks is not told.
	ErrAddressMailed = fmt.Errorf("%w to the address", ErrTooManyMails)
	// ErrUnverifiedAccount: the address has an account whose holder never proved that the address is theirs.
	ErrUnverifiedAccount = errors.New("account with an address that was never verified")
	// ErrUnverifiedEmail: the provider does not vouch for the address.
	ErrUnverifiedEmail = errors.New("provider has not verified the e-mail address")
	// ErrNeedsConsent: nobody has this identity yet; the privacy policy comes first.
	ErrNeedsConsent = errors.New("no account yet")
	// ErrIdentityTaken: the identity signs in to another account.
	ErrIdentityTaken = errors.New("identity belongs to another account")
	// ErrLastWayIn: nothing would be left to sign in with.
	ErrLastWayIn = errors.New("last way to sign in")
	// ErrHasPassword: a password is changed with the current one.
	ErrHasPassword = errors.New("account has a password")
)

// Ways to sign in, as a browser session remembers them.
const (
	ByPassword = "password"
	ByPasskey  = "passkey"
	ByMail     = "mail"  // by a mailed link
	ByOIDC     = "oidc:" // and the provider's id
)

// Lives and limits.
const (
	// SessionLife is how long a browser stays signed in.
	SessionLife = 30 * 24 * time.Hour
	// ResetLife and VerifyLife are how long a mailed link works.
	ResetLife  = time.Hour
	VerifyLife = 24 * time.Hour
	// MaxMails go to one account, and to one address, within an hour.
	MaxMails = 3
	// touchEvery is how often the use of a browser session is written down at most.
	touchEvery = 5 * time.Minute
	maxAgent   = 256 // bytes of a User-Agent that are kept
)

// Account is a person's account. PasswordHash never leaves the backend; it is empty when there is no password.
type Account struct {
	ID              string
	Email           string
	PasswordHash    string
	Active          bool
	PrivacyAccepted time.Time
	CreatedAt       time.Time
	VerifiedAt      time.Time // zero: nobody has proved the address
}

// Verified tells whether the holder has proved that the address is theirs.
func (a Account) Verified() bool { return !a.VerifiedAt.IsZero() }

// HasPassword tells whether a password signs in.
func (a Account) HasPassword() bool { return a.PasswordHash != "" }

// Visit is how and from where a browser signed in.
type Visit struct {
	Method, UserAgent, IP string
	// PasswordHash is the account's when the person was checked; empty without one. A change since then signs every browser
	// out, and one that is about to be signed in with them.
	PasswordHash string
}

// BrowserSession is one browser that is signed in.
type BrowserSession struct {
	ID string
	Visit
	CreatedAt, UsedAt, ExpiresAt time.Time
	// Current is the browser that asks.
	Current bool
	// Hash is the store's name of it.
	Hash string
}

// Identity is what a provider says of a person who signed in there.
type Identity struct {
	Provider, Subject, Email string
	EmailVerified            bool
}

// LinkedIdentity is an identity that signs in to an account.
type LinkedIdentity struct {
	Provider, Subject, Email string
	LinkedAt, UsedAt         time.Time
}

// Access is what signs in to an account or acts for it besides the password.
type Access struct{ Links, Passkeys, Identities bool }

// AllAccess is everything of it.
func AllAccess() Access { return Access{Links: true, Passkeys: true, Identities: true} }

// words lists it for the account's activity and mail.
func (a Access) words() []string {
	var words []string
	for _, part := range []struct {
		on   bool
		word string
	}{{a.Links, "linked agents"}, {a.Passkeys, "passkeys"}, {a.Identities, "sign-in providers"}} {
		if part.on {
			words = append(words, part.word)
		}
	}
	return words
}

// Purposes of mailed links; a link of one never serves another.
const (
	purposeVerify = "verify"
	purposeEmail  = "email" // a new address, in force once verified
	purposeReset  = "reset"
)

// MailToken is a mailed link as stored. Email is the address that it went to.
type MailToken struct {
	Hash, AccountID, Purpose, Email string
	CreatedAt, ExpiresAt            time.Time
}

// NewEmail tells whether the link gives the account a new address.
func (t MailToken) NewEmail() bool { return t.Purpose == purposeEmail }

// Store is all that the service keeps.
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

// SignUpStore keeps sign-ups that wait for their mailed link.
type SignUpStore interface {
	// InsertSignUp answers ErrTooManyMails when most were stored for the address after since.
	InsertSignUp(ctx context.Context, p PendingSignUp, since time.Time, most int) error
	// SignUpByToken answers ErrBadToken for an unknown or overdue one.
	SignUpByToken(ctx context.Context, hash string, now time.Time) (PendingSignUp, error)
	// FinishSignUp uses one up and makes the account: ErrBadToken, ErrEmailTaken.
	FinishSignUp(ctx context.Context, hash string, a Account) error
}

// GuessStore counts wrong passwords.
type GuessStore interface {
	// TakeGuess spends one of most guesses, of which one comes back each every, and returns 0; or how long it takes until
	// there is one.
	TakeGuess(ctx context.Context, key string, now time.Time, every time.Duration, most int) (time.Duration, error)
	// ReturnGuess gives one back.
	ReturnGuess(ctx context.Context, key string, now time.Time, every time.Duration) error
	// SweepGuesses drops what has come back whole.
	SweepGuesses(ctx context.Context, now time.Time) error
}

// PeopleStore keeps accounts.
type PeopleStore interface {
	// InsertAccount answers ErrEmailTaken.
	InsertAccount(ctx context.Context, a Account) error
	// AccountByEmail answers ErrBadCredentials.
	AccountByEmail(ctx context.Context, email string) (Account, error)
	// AccountByID answers ErrNotFound.
	AccountByID(ctx context.Context, id string) (Account, error)
	// SetPassword changes from the old hash to the new one, ends every browser session but keepHash and every mailed
	// link to a new password; ErrBadCredentials when the old hash is no longer the account's.
	SetPassword(ctx context.Context, from, to, keepHash string, e audit.Entry) error
	// SetActive suspends or restores the entry's account; false, and no entry, when it was so before.
	SetActive(ctx context.Context, active bool, e audit.Entry, t audit.Trace) (bool, error)
}

// SessionStore keeps browser sessions; they are known by the hash of their secret.
type SessionStore interface {
	// InsertWebSession stores the session of an active account, ErrSuspended otherwise, whose password is still that of the
	// visit, ErrBadCredentials otherwise.
	InsertWebSession(ctx context.Context, accountID string, b BrowserSession) error
	// AccountByWebSession answers ErrNoSession for an unknown or expired one. used is when it was last written down.
	AccountByWebSession(ctx context.Context, hash string, now time.Time) (a Account, used time.Time, err error)
	// DeleteWebSession tells whose it was; for an unknown one that is empty, and no error.
	DeleteWebSession(ctx context.Context, hash string) (accountID string, err error)
	// TouchWebSession notes a use.
	TouchWebSession(ctx context.Context, hash string, now time.Time) error
}

// SessionList shows and ends the browser sessions of an account.
type SessionList interface {
	// WebSessions lists those that are not over, the last used first.
	WebSessions(ctx context.Context, accountID string, now time.Time) ([]BrowserSession, error)
	// EndWebSessions ends the one with that id, or with id "" all but keepHash, and counts them; the entry is written
	// when there was one.
	EndWebSessions(ctx context.Context, id, keepHash string, e audit.Entry) (int, error)
}

// MailStore keeps mailed links.
type MailStore interface {
	// InsertMailToken stores a link in place of the earlier one of its purpose: ErrTooManyMails when most went to the
	// account after since, ErrAddressMailed when most went to the address. With most 0 nothing is counted.
	InsertMailToken(ctx context.Context, t MailToken, since time.Time, most int) error
	// MailToken answers ErrBadToken for an unknown or overdue one, and for one of a suspended account ErrSuspended.
	MailToken(ctx context.Context, hash string, now time.Time) (MailToken, error)
	// ConfirmEmail uses the link up and gives the account the address as a verified one: ErrBadToken, ErrEmailTaken.
	ConfirmEmail(ctx context.Context, t MailToken, now time.Time, e audit.Entry) error
	// ResetPassword uses the link up, sets the password, revokes what revoke says, ends all browser sessions and marks the
	// address verified. An address that was not verified before loses all Access.
	ResetPassword(ctx context.Context, t MailToken, passwordHash string, revoke Access, now time.Time, e audit.Entry, revoked audit.Trace) error
}

// IdentityStore keeps what providers vouch for.
type IdentityStore interface {
	// AccountByIdentity answers ErrNotFound.
	AccountByIdentity(ctx context.Context, provider, subject string, now time.Time) (Account, error)
	// InsertIdentity answers ErrIdentityTaken; for the account's own it changes nothing and answers false.
	InsertIdentity(ctx context.Context, id LinkedIdentity, e audit.Entry) (bool, error)
	// InsertAccountWith makes an account and its identity: ErrEmailTaken, ErrIdentityTaken.
	InsertAccountWith(ctx context.Context, a Account, id LinkedIdentity) error
	Identities(ctx context.Context, accountID string) ([]LinkedIdentity, error)
	// DeleteIdentity answers ErrNotFound and ErrLastWayIn.
	DeleteIdentity(ctx context.Context, provider, subject string, e audit.Entry) error
}

// DataStore hands out and deletes everything of an account.
type DataStore interface {
	// ExportAccount gives every row that the backend holds of an account, section after section, without secrets.
	ExportAccount(ctx context.Context, accountID string, row func(section string, fields map[string]any) error) error
	// DeleteAccount deletes the account and all that hangs on it; ErrNotFound.
	DeleteAccount(ctx context.Context, accountID string) error
	InsertAudit(ctx context.Context, e audit.Entry) error
}

// Outbox takes mail to be sent later.
type Outbox interface {
	// Queue never waits; an error says that the queue is full.
	Queue(m mail.Message) error
	// Enabled tells whether there is a server to send with.
	Enabled() bool
}
