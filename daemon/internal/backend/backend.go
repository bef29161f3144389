// Package backend defines the daemon's types for a backend: the target of a call, its result, and its refusal. The
// types are independent of the transport: pluginhost fills them, and link, session and tools use them. The types of the
// HTTP interface itself are in proto/backendapi.
package backend

import (
	"strings"
	"time"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/internal/problem"
)

// Target is the destination of a call and its caller's identity. Exactly one of InstallID and Bearer is set.
type Target struct {
	// BaseURL is the backend's address. For the embedded backend it is EmbeddedURL or "embedded:<id>".
	BaseURL   string
	InstallID string
	// Bearer is a secret.
	Bearer    string
	Requester Requester
}

// EmbeddedURL is the embedded backend's address before its ID is known. A link's backendUrl holds "embedded:<id>".
const EmbeddedURL = "embedded:"

// DisplayName returns a backend's address in a form for users, who would not understand "embedded:<id>". It returns "an
// unknown backend" if url is empty.
func DisplayName(url string) string {
	if url == "" {
		return "an unknown backend"
	}
	if strings.HasPrefix(url, EmbeddedURL) {
		return "the embedded backend"
	}
	return url
}

// Requester describes who requests a link, as shown on the activation page.
type Requester struct{ Host, OS, Client string }

// DeviceCode is an issued code. Its fields DeviceCode and UserCode are secrets until they are used: never log them.
type DeviceCode struct {
	DeviceCode      string
	UserCode        string
	VerificationURL string
	ExpiresIn       time.Duration
	PollInterval    time.Duration
	// SignInWord is the word that the page requires for signing up or in; empty if none is required, as with most
	// backends.
	SignInWord string
}

// Poll is one response of the token endpoint. Token is nil while the request is pending.
type Poll struct {
	// PollInterval is the interval that the backend requested, unclamped, or 0.
	PollInterval time.Duration
	Token        *Token
}

// Token is an approval. AuthToken is a secret.
type Token struct {
	AuthToken string
	Account
}

// Account describes the account of a token.
type Account struct {
	AccountID string
	Tier      string
	LinkedAt  time.Time
	// ExpiresAt is nil for tokens that never expire.
	ExpiresAt *time.Time
	// Email is the address with which the account's owner signs in; empty if unknown. It is shown only to the user who
	// links this machine, and never stored, logged or passed to an agent.
	Email string
}

// LocalAccount is an account of the embedded backend, with the number of its live links and passkeys.
type LocalAccount struct {
	ID, Email       string
	Links, Passkeys int
}

// NewPassword is a request to set the password of an embedded backend's account. Password is a secret. RevokeLinks and
// RemovePasskeys revoke other access as well.
type NewPassword struct {
	Email, Password             string
	RevokeLinks, RemovePasskeys bool
}

// PasswordReset reports the access that a password reset ended.
type PasswordReset struct {
	AccountID                 string
	Browsers, Links, Passkeys int
}

// Values of Session.Transport.
const (
	TransportLocal   = "local"   // simulated by a process of the daemon, which keeps the log
	TransportBrowser = "browser" // simulated by a page; the backend keeps the log

	ClockVirtual = glasses.ClockVirtual // time moves only when it is advanced
	ClockReal    = glasses.ClockReal    // Unix time
)

// Session is a session as reported by its host: the backend for a browser session, the daemon for a local one.
type Session struct {
	SessionID    string
	Project      string
	Platform     string
	DeviceModel  string
	State        string // open | closed
	SessionURL   string
	AppEndpoint  string
	CreatedAt    time.Time
	LastActiveAt time.Time
	ExpiresAt    time.Time
	ClosedAt     time.Time // zero while open
	Apps, Pages  int
	LastSeq      int64
	Transport    string // TransportLocal, TransportBrowser, or the name of an adapter's transport
	Clock        string // ClockVirtual or ClockReal
	// NowMs is the session's time in milliseconds: virtual time since the session began, or Unix time.
	NowMs int64
	// Hardware is the state of real glasses; nil for simulated ones.
	Hardware *Hardware
}

// ProjectKey is a key of one of the linked account's projects. Key is a secret: it is written only to a file that
// version control ignores.
type ProjectKey struct {
	Key string
	// Hint is the end of the key, which helps users tell keys apart.
	Hint      string
	CreatedAt time.Time
}

// Health is the health that a backend reports.
type Health struct {
	OK                                       bool
	Service, Version, Commit, BuiltAt, Phase string
	Uptime                                   time.Duration
	Hints                                    map[string]string
}

// AuthRequired is a problem with CodeAuthRequired and a new device code.
type AuthRequired struct {
	Problem    *problem.Error
	DeviceCode DeviceCode
}

// Error returns the problem's message.
func (e *AuthRequired) Error() string { return e.Problem.Message }

// Unwrap returns the problem.
func (e *AuthRequired) Unwrap() error { return e.Problem }
