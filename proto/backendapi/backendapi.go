// Package backendapi is the HTTP contract of a backend: paths, header names, JSON shapes and error codes. Golden files
// in testdata show every shape on the wire. The package contains neither server nor client code.
package backendapi

import "encoding/json"

// Paths of the routes.
const (
	PathDeviceCode  = "/api/auth/device/code"
	PathDeviceToken = "/api/auth/device/token"
	// PathDeviceCancel cancels a device code that will not be polled again.
	PathDeviceCancel = "/api/auth/device/cancel"
	PathAccount      = "/api/account"
	PathAccountLink  = "/api/account/link" // DELETE revokes the link of the caller's token
	PathSessions     = "/api/sessions"
	PathProjects     = "/api/projects"
	PathHealth       = "/api/health"
	PathTelemetry    = "/api/telemetry"
	// PathAssistantScript is below a session: POST an assistant script -> Session.
	PathAssistantScript = "/assistant-script"
)

// Headers. A request has the install id or a bearer token, never both. The other three headers describe the requester.
// They are optional, have at most 100 printable characters each, and are shown to the user on the activation page.
const (
	HeaderInstallID = "X-Service-Install-Id"
	HeaderHost      = "X-Service-Host"
	HeaderOS        = "X-Service-Os"
	HeaderClient    = "X-Service-Client"
)

// ScopeAccountFull is the only scope.
const ScopeAccountFull = "account_full"

// TierFreeAccount is the tier of a linked account.
const TierFreeAccount = "free_account"

// DeviceCodeRequest is the body of POST /api/auth/device/code.
type DeviceCodeRequest struct {
	Scope string `json:"scope"`
}

// DeviceCode is the response to a DeviceCodeRequest.
type DeviceCode struct {
	DeviceCode          string `json:"deviceCode" check:"visible=512,required"`
	UserCode            string `json:"userCode" check:"usercode,required"`
	VerificationURL     string `json:"verificationUrl" check:"ascii=512,required"`
	ExpiresInSeconds    int64  `json:"expiresInSeconds" check:"required"`
	PollIntervalSeconds int64  `json:"pollIntervalSeconds"`
}

// TokenRequest is the body of POST /api/auth/device/token and of POST /api/auth/device/cancel.
type TokenRequest struct {
	DeviceCode string `json:"deviceCode"`
}

// Pending is the response to a TokenRequest until the user has decided.
type Pending struct {
	Pending             bool  `json:"pending"`
	PollIntervalSeconds int64 `json:"pollIntervalSeconds"`
}

// Token is the response to a TokenRequest after approval. Never log AuthToken.
type Token struct {
	AuthToken string `json:"authToken" check:"token=4096,required"`
	Account
}

// Account is the response to GET /api/account and describes the owner of a token. Times are ISO 8601 UTC. ExpiresAt is
// always present, and null for a token that does not expire.
type Account struct {
	AccountID string  `json:"accountId" check:"name=64,required"`
	Tier      string  `json:"tier" check:"name=64,required"`
	LinkedAt  string  `json:"linkedAt" check:"time,required"`
	ExpiresAt *string `json:"expiresAt" check:"time"`
	// Email is the address with which the account's owner signs in. It is absent in a Token. Show it only to the owner,
	// and never store it, log it or pass it to an agent.
	Email string `json:"email,omitempty" check:"line=254"`
}

// Problem is the body of every error response: application/problem+json (RFC 9457) with one of the codes above.
type Problem struct {
	Type      string `json:"type"`
	Title     string `json:"title"`
	Status    int    `json:"status"`
	Code      string `json:"code"`
	Detail    string `json:"detail"`
	Retryable bool   `json:"retryable"`
	FixHint   string `json:"fixHint"`
}

// AuthRequired is the 401 body of an account route. It is a Problem with a new device code.
type AuthRequired struct {
	Problem
	DeviceCode
}

// SessionRequest is the body of POST /api/sessions.
type SessionRequest struct {
	Project     string `json:"project"`
	Platform    string `json:"platform,omitempty"`
	DeviceModel string `json:"deviceModel,omitempty"`
	Fresh       bool   `json:"fresh,omitempty"`
}

// Session is a session of the browser simulator. Apps and Pages are the numbers of current connections. LastSeq is the
// sequence number of the latest event, or 0 before the first.
type Session struct {
	SessionID    string  `json:"sessionId" check:"name=128,required"`
	Project      string  `json:"project" check:"line=200"`
	Platform     string  `json:"platform" check:"name=64"`
	DeviceModel  string  `json:"deviceModel" check:"name=64"`
	State        string  `json:"state" check:"name=32,required"`
	SessionURL   string  `json:"sessionUrl" check:"page,required"`
	AppEndpoint  string  `json:"appEndpoint" check:"socket,required"`
	CreatedAt    string  `json:"createdAt" check:"time"`
	LastActiveAt string  `json:"lastActiveAt" check:"time"`
	ExpiresAt    string  `json:"expiresAt" check:"time"`
	ClosedAt     *string `json:"closedAt" check:"time"`
	Apps         int     `json:"apps"`
	Pages        int     `json:"pages"`
	LastSeq      int64   `json:"lastSeq"`
}

// CreatedSession is the response to POST /api/sessions. For a new session, the status is 201 and Created is set. For a
// resumed one, the status is 200.
type CreatedSession struct {
	Session
	Created bool `json:"created"`
}

// SessionList is the response to GET /api/sessions. It contains the open sessions, newest first.
type SessionList struct {
	Sessions []Session `json:"sessions" check:"required"`
}

// SessionSecret is the response to POST /api/sessions/{id}/secrets. Never log AppSecret.
type SessionSecret struct {
	AppSecret string `json:"appSecret" check:"token=512,required"`
}

// EventPage is the response to GET /api/sessions/{id}/events. It contains rows of the event log after a cursor.
type EventPage struct {
	Events []json.RawMessage `json:"events" check:"required"`
	Next   int64             `json:"next"`
	More   bool              `json:"more"`
	// Truncated reports that some rows after the request's cursor are no longer stored.
	Truncated bool `json:"truncated,omitempty"`
}

// MaxWaitMs is the maximum value of waitMs in GET /api/sessions/{id}/events, in ms.
const MaxWaitMs = 25_000

// Control is the body of POST /api/sessions/{id}/control, which is a glasses control frame for the simulator page.
type Control struct {
	Type    string          `json:"type"`
	Payload json.RawMessage `json:"payload"`
	// Media is the picture of sim.camera or the WAV of sim.microphone, at most MaxControlMedia bytes. It is encoded as
	// base64.
	Media []byte `json:"media,omitempty"`
}

// MaxControlMedia is the maximum size of Control.Media in bytes, before base64 encoding.
const MaxControlMedia = 1 << 20

// Controlled is the response to a Control. It is the payload of the page's result (glasses.Result), including errors.
type Controlled struct {
	Result json.RawMessage `json:"result" check:"required"`
}

// ProjectKeyRequest is the body of POST /api/projects/{project}/keys. Name describes the purpose of the key.
type ProjectKeyRequest struct {
	Name string `json:"name"`
}

// ProjectKey is the response to a ProjectKeyRequest. It is the only response that contains the key, which is a
// secret. Hint is the end of the key, for display.
type ProjectKey struct {
	ProjectKey string `json:"projectKey" check:"token=512,required"`
	Hint       string `json:"hint" check:"line=64"`
	CreatedAt  string `json:"createdAt" check:"time,required"`
}

// Health is the response to GET /api/health.
type Health struct {
	OK       bool              `json:"ok"`
	Service  string            `json:"service" check:"line=64,required"`
	Version  string            `json:"version" check:"line=64"`
	Commit   string            `json:"commit" check:"line=64"`
	BuiltAt  string            `json:"builtAt" check:"line=64"`
	UptimeMs int64             `json:"uptimeMs"`
	Phase    string            `json:"phase" check:"line=64"`
	Hints    map[string]string `json:"hints" check:"line=500"`
}
