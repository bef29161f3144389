// Package backend is the daemon's vocabulary of a backend: where a call goes, what comes back, and how it is refused.
// It holds no behaviour and knows no transport; pluginhost fills these types, link, session and tools use them.
package backend

import (
	"encoding/json"
	"strings"
	"time"
)

// Target is where a call goes and as whom. Exactly one of InstallID and Bearer is set.
type Target struct {
	// BaseURL is the backend's address; EmbeddedURL or "embedded:<id>" for the embedded backend.
	BaseURL   string
	InstallID string
	// Bearer is a secret.
	Bearer    string
	Requester Requester
}

// EmbeddedURL names the embedded backend before its id is known. A link's backendUrl holds "embedded:<id>".
const EmbeddedURL = "embedded:"

// DisplayName is how a backend's address is told to people: "embedded:<id>" means nothing to them.
func DisplayName(url string) string {
	if url == "" || strings.HasPrefix(url, EmbeddedURL) {
		return "the embedded backend"
	}
	return url
}

// Requester is who asks, as the activation page shows it.
type Requester struct{ Host, OS, Client string }

// DeviceCode is a code that was issued. DeviceCode and UserCode are secrets until used: never log them.
type DeviceCode struct {
	DeviceCode      string
	UserCode        string
	VerificationURL string
	ExpiresIn       time.Duration
	PollInterval    time.Duration
	// SignInWord is what the page asks for to sign up or in; empty where it asks for none, as nearly everywhere.
	SignInWord string
}

// Poll is one answer of the token endpoint: pending while Token is nil.
type Poll struct {
	// PollInterval is what the backend said, unclamped; 0 when it said nothing.
	PollInterval time.Duration
	Token        *Token
}

// Token is an approval. AuthToken is a secret.
type Token struct {
	AuthToken string
	Account
}

// Account is who a token is.
type Account struct {
	AccountID string
	Tier      string
	LinkedAt  time.Time
	// ExpiresAt is nil for tokens that never expire.
	ExpiresAt *time.Time
}

// Words of Session.Transport and Session.Clock.
const (
	TransportLocal   = "local"   // simulated in the daemon's own process tree; its log is the daemon's
	TransportBrowser = "browser" // simulated in a page; its log is the backend's

	ClockVirtual = "virtual" // time moves when somebody advances it
	ClockReal    = "real"    // Unix time
)

// Session is a session as its owner tells it: the backend for a browser session, the daemon for a local one.
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
	Transport    string // TransportLocal or TransportBrowser
	Clock        string // ClockVirtual or ClockReal
	// NowMs is the session's clock when it was read, in ms: of virtual time since the session began, else Unix time.
	NowMs int64
}

// SessionRequest asks for the session of (account, link, project, platform).
type SessionRequest struct {
	Project     string
	Platform    string
	DeviceModel string // empty: the session's own, or the backend's default
	Fresh       bool
}

// EventPage is a page of the event log after a cursor.
type EventPage struct {
	Events []json.RawMessage
	Next   int64
	More   bool
	// Truncated says that rows after the cursor of the request are gone.
	Truncated bool
}

// ProjectKey is a key of a project of the linked account. Key is a secret: it goes into an ignored file and nowhere else.
type ProjectKey struct {
	Key string
	// Hint is the key's last characters, for people.
	Hint      string
	CreatedAt time.Time
}

// Health is a backend's word on itself.
type Health struct {
	OK                                       bool
	Service, Version, Commit, BuiltAt, Phase string
	Uptime                                   time.Duration
	Hints                                    map[string]string
}

// Problem is a refusal by a backend, or the failure to reach one. It is an error; callers branch on Code.
type Problem struct {
	Code       string
	Message    string
	Retryable  bool
	FixHint    string
	HTTPStatus int // 0 when no answer came
	RetryAfter time.Duration
	DeviceCode *DeviceCode // set with CodeAuthRequired

	// With CodePermissionDenied: what agents are granted and what the call needs. Field is empty unless one field of a
	// record is meant.
	Capability, Field, Needed, Granted string
	// CurrentVersion is the record's version now, with CodeVersionConflict.
	CurrentVersion int64
}

// Error says what happened, without the code and without secrets.
func (p *Problem) Error() string { return p.Message }

// Codes that the daemon itself branches on; others pass through.
const (
	CodeAuthRequired       = "auth_required"
	CodeUnreachable        = "backend_unreachable"
	CodeInvalidResponse    = "backend_invalid_response"
	CodeUnknownDeviceCode  = "unknown_device_code"
	CodeDeviceCodeExpired  = "device_code_expired"
	CodeDeviceCodeDenied   = "device_code_denied"
	CodeRateLimited        = "rate_limited"
	CodeNotFound           = "not_found"
	CodeNotConnected       = "not_connected" // no glasses are attached to the session
	CodeTimeout            = "timeout"       // the glasses did not answer in time
	CodeUnsupported        = "unsupported"   // the session cannot do this, e.g. advance a real clock
	CodeTooManySessions    = "too_many_sessions"
	CodeSandboxBlocked     = "sandbox_blocked"
	CodeAdapterUnavailable = "adapter_unavailable"
	CodePermissionDenied   = "permission_denied" // the account's owner does not grant this to agents
	CodeVersionConflict    = "version_conflict"  // the record was changed since it was read
	CodeNotConfigured      = "not_configured"    // the backend's operator has not set this up
)
