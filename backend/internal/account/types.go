package account

import (
	"errors"
	"fmt"
	"time"

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
	ErrTooManyMails = errors.New("too many e-mails sent within an hour")
	// ErrAddressMailed is ErrTooManyMails caused by the address alone. Others may have caused it, so it is never shown
	// to users.
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
	// Browser describes the browser in the account's activity, e.g. "Firefox on Linux". It is stored only there.
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

// Identity is a provider's description of a user.
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

// Outbox queues mail. It is an interface so that tests can read mails and let the queue be full.
type Outbox interface {
	// Queue never blocks. It returns an error if the queue is full.
	Queue(m mail.Message) error
	// Enabled reports whether a mail server is configured.
	Enabled() bool
}
