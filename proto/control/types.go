package control

import (
	"encoding/json"
	"time"

	"github.com/service-dev/service/internal/problem"
)

// The fields of types that `servicectl --json` prints are in alphabetical order, which is the order in the output.

// Version identifies a daemon and the protocols that it supports on control.sock.
type Version struct {
	Version     string `json:"version"`
	PID         int    `json:"pid"`
	ProtocolMin int    `json:"protocolMin"`
	ProtocolMax int    `json:"protocolMax"`
}

// Status is the state of the daemon.
type Status struct {
	Backend   Backend `json:"backend"`
	ConfigDir string  `json:"configDir"`
	// ConfigProblem is the reason why the current config.yaml is not in use; empty if it is in use.
	ConfigProblem string  `json:"configProblem,omitempty"`
	Consent       Consent `json:"consent"`
	ControlSocket string  `json:"controlSocket"`
	InstallID     string  `json:"installId"`
	Link          Link    `json:"link"`
	// Managed is set if an OS service started the daemon.
	Managed    bool     `json:"managed"`
	MCPClients int      `json:"mcpClients"`
	MCPSocket  string   `json:"mcpSocket"`
	PID        int      `json:"pid"`
	Plugins    []Plugin `json:"plugins"`
	// Polling is the number of device codes being polled.
	Polling int `json:"polling"`
	// Program is the daemon's executable.
	Program     string `json:"program"`
	ProtocolMax int    `json:"protocolMax"`
	ProtocolMin int    `json:"protocolMin"`
	// Replaced is set if Program was replaced after the daemon started, so that a restart would run the new one.
	Replaced bool `json:"replaced"`
	// Sessions is the number of open local sessions.
	Sessions int `json:"sessions"`
	// SocketActivated is set if the service manager created the sockets.
	SocketActivated bool `json:"socketActivated"`
	// UnclearedGlasses lists the glasses that may still show a picture because a session ended without clearing it.
	UnclearedGlasses []string `json:"unclearedGlasses,omitempty"`
	UptimeMs         int64    `json:"uptimeMs"`
	Version          string   `json:"version"`
}

// Link is the account link, without the token.
type Link struct {
	AccountID  string `json:"accountId"`
	BackendURL string `json:"backendUrl"`
	// Detail explains the state where necessary, e.g. why auth.json is corrupt.
	Detail string `json:"detail"`
	// ExpiresAt is nil if the token never expires.
	ExpiresAt *string `json:"expiresAt"`
	LinkedAt  string  `json:"linkedAt"` // ISO 8601 in UTC
	State     string  `json:"state"`    // not_linked | linked | revoked | expired | corrupt | other_backend
	Tier      string  `json:"tier"`
	// VerifiedAgeMs is the age of the backend's last verdict on the token, or -1 if the backend was never asked.
	VerifiedAgeMs int64 `json:"verifiedAgeMs"`
}

// Consent is the telemetry decision and its effect on the caller.
type Consent struct {
	// DecidedBy is the switch that decides: consent | consent_unreadable | SERVICE_TELEMETRY | DO_NOT_TRACK | CI |
	// SERVICE_BACKEND_URL (this shell uses another backend) | embedded (there is no backend to upload to) | notice (not
	// shown yet) | default.
	DecidedBy     string `json:"decidedBy"`
	State         string `json:"state"` // accepted | declined | unset | unreadable
	UploadAllowed bool   `json:"uploadAllowed"`
}

// Backend is the backend that the caller's calls use.
type Backend struct {
	ChosenBy string `json:"chosenBy"` // env | config | build | default
	// DashboardURL is empty while the embedded backend is not running.
	DashboardURL string `json:"dashboardUrl"`
	Detail       string `json:"detail"`
	Kind         string `json:"kind"`  // embedded | remote
	State        string `json:"state"` // unknown | reachable | unreachable
	// URL is a URL or embedded:<id>. It is empty if the embedded backend has never run.
	URL string `json:"url"`
}

// Plugin is one adapter. Times are in Unix milliseconds; 0 means never.
type Plugin struct {
	// AddedMs, Owner, SHA256 and Title are set for an adapter that the user added.
	AddedMs   int64  `json:"addedMs"`
	CrashedMs int64  `json:"crashedMs"`
	LastError string `json:"lastError"`
	Name      string `json:"name"`
	Owner     string `json:"owner"`
	Path      string `json:"path"`
	PID       int    `json:"pid"`
	Restarts  int    `json:"restarts"`
	ResumeMs  int64  `json:"resumeMs"` // time of the next start, if State is backoff
	SHA256    string `json:"sha256"`
	SinceMs   int64  `json:"sinceMs"`
	State     string `json:"state"` // stopped | starting | running | backoff | refused
	Title     string `json:"title"`
	Verified  bool   `json:"verified"`
	Version   string `json:"version"`
}

// Plugins is the list of adapters.
type Plugins struct {
	Plugins []Plugin `json:"plugins"`
}

// PluginAnswer is the adapter that was added or removed.
type PluginAnswer struct {
	Plugin Plugin `json:"plugin"`
}

// AddPluginRequest names an adapter's program. Path is absolute and without symbolic links, and may not be UTF-8.
// SHA256 is the digest that the user approved, in hexadecimal.
type AddPluginRequest struct {
	Path   []byte `json:"path"`
	SHA256 string `json:"sha256"`
}

// NameRequest names an adapter, a font or a pair of glasses.
type NameRequest struct {
	Name string `json:"name"`
}

// WhoamiRequest requests the identity. If Refresh is set, the daemon first asks the backend about the link.
type WhoamiRequest struct {
	Refresh bool `json:"refresh,omitempty"`
}

// Identity describes the install and its link.
type Identity struct {
	InstallID string `json:"installId"`
	// Linked is nil if the backend has never answered.
	Linked    *bool   `json:"linked"`
	State     string  `json:"state"` // as in Link
	AccountID *string `json:"accountId"`
	Tier      *string `json:"tier"`
	LinkedAt  *string `json:"linkedAt"`
	// ExpiresAt is nil if the token never expires or no link exists.
	ExpiresAt          *string `json:"expiresAt"`
	BackendURL         *string `json:"backendUrl"`
	VerifiedAgeSeconds *int64  `json:"verifiedAgeSeconds"`
	Detail             string  `json:"detail,omitempty"`
}

// LoginRequest starts a login. Replace allows the login to replace a live link of another account or backend.
type LoginRequest struct {
	Replace bool `json:"replace,omitempty"`
}

// LoginEvent is one line of a login. Exactly one field is set.
type LoginEvent struct {
	Code    *DeviceCode `json:"code,omitempty"`
	Opened  *Opened     `json:"opened,omitempty"`
	Waiting *Waiting    `json:"waiting,omitempty"`
	Linked  *Linked     `json:"linked,omitempty"`
}

// DeviceCode is the code of a login, with the page to open and the code to compare.
type DeviceCode struct {
	UserCode            string `json:"userCode"`
	VerificationURL     string `json:"verificationUrl"`
	ExpiresInSeconds    int    `json:"expiresInSeconds"`
	PollIntervalSeconds int    `json:"pollIntervalSeconds"`
	// Replaces is the link that an approval would replace, as "account <id> at <backend>"; empty if there is none.
	Replaces string `json:"replaces,omitempty"`
	// SignInWord is the word that the page requires to sign up or in; empty if none is required.
	SignInWord string `json:"signInWord,omitempty"`
}

// Opened reports whether a browser was opened for a login, and if not, the reason: disabled | no_desktop | failed |
// refused | client.
type Opened struct {
	Opened bool   `json:"opened"`
	Reason string `json:"reason,omitempty"`
}

// Waiting reports that a poll was made and the user has not decided yet.
type Waiting struct {
	PollCount        int    `json:"pollCount"`
	RemainingSeconds int    `json:"remainingSeconds"`
	Note             string `json:"note,omitempty"`
}

// Linked is the result of a login.
type Linked struct {
	AccountID string  `json:"accountId"`
	Tier      string  `json:"tier"`
	LinkedAt  string  `json:"linkedAt"`
	ExpiresAt *string `json:"expiresAt"`
	AuthFile  string  `json:"authFile"`
	PollCount int     `json:"pollCount"`
	// WriteError is the reason why auth.json could not be written; empty if it was written. The daemon uses the link
	// until it exits, and keeps trying to write it.
	WriteError string `json:"writeError,omitempty"`
	// RevokeURL is the page on which the user can revoke the replaced token; empty if the token was revoked or there
	// was none.
	RevokeURL string `json:"revokeUrl,omitempty"`
	// Email is the address with which the user signs in. It may be shown only on a terminal, and is empty if the
	// backend returns none.
	Email string `json:"email,omitempty"`
}

// LoggedOut is the result of a logout.
type LoggedOut struct {
	AuthFile string `json:"authFile"`
	// RevokeURL is the page on which the user can revoke the token; nil if the token was revoked or there was none.
	RevokeURL *string `json:"revokeUrl"`
	Revoked   bool    `json:"revoked"`
	WasLinked bool    `json:"wasLinked"`
}

// ConsentRequest is a telemetry decision, accepted or declined.
type ConsentRequest struct {
	State string `json:"state"`
}

// Decision is a recorded telemetry decision, the file that contains it, and its effect.
type Decision struct {
	Consent       string `json:"consent"` // the State of Consent
	DecidedBy     string `json:"decidedBy"`
	File          string `json:"file"`
	UploadAllowed bool   `json:"uploadAllowed"`
}

// AccountsRequest selects the account with an email address. An empty address selects all accounts.
type AccountsRequest struct {
	Email string `json:"email,omitempty"`
}

// Accounts contains at most 50 accounts, the oldest first.
type Accounts struct {
	Accounts []LocalAccount `json:"accounts"`
}

// LocalAccount is an account of the embedded backend. It includes the number of its links that are not revoked, and of
// its passkeys.
type LocalAccount struct {
	AccountID string `json:"accountId"`
	Email     string `json:"email"`
	Links     int    `json:"links"`
	Passkeys  int    `json:"passkeys"`
}

// PasswordRequest sets a password. Password is a secret.
type PasswordRequest struct {
	Email          string `json:"email"`
	Password       string `json:"password"`
	RevokeLinks    bool   `json:"revokeLinks,omitempty"`
	RemovePasskeys bool   `json:"removePasskeys,omitempty"`
}

// PasswordReset reports the access that a new password ended.
type PasswordReset struct {
	AccountID         string `json:"accountId"`
	BrowsersSignedOut int    `json:"browsersSignedOut"`
	Email             string `json:"email"`
	LinksRevoked      int    `json:"linksRevoked"`
	PasskeysRemoved   int    `json:"passkeysRemoved"`
	SignInURL         string `json:"signInUrl"`
}

// Telemetry describes what is recorded and where it is sent. A nil time means never.
type Telemetry struct {
	BackendURL    string     `json:"backendUrl"` // empty if there is none
	Consent       string     `json:"consent"`    // the State of Consent
	DecidedBy     string     `json:"decidedBy"`
	Dropped       int64      `json:"dropped"` // events lost since the last upload because the spool was full
	LastError     string     `json:"lastError"`
	LogFile       string     `json:"logFile"`
	NextTryAt     *time.Time `json:"nextTryAt"`
	NoticeShownAt *time.Time `json:"noticeShownAt"`
	SpoolBytes    int64      `json:"spoolBytes"`
	SpoolCap      int64      `json:"spoolCap"`
	UploadAllowed bool       `json:"uploadAllowed"`
	Uploaded      int        `json:"uploaded"` // number of events in the last upload
	UploadedAt    *time.Time `json:"uploadedAt"`
	Waiting       int        `json:"waiting"` // number of events in the spool
}

// Purged reports what a purge erased: events in the local log, in the spool, and at the backends.
type Purged struct {
	Backend        string `json:"backend"` // erased | nothing (no backend has events) | failed
	BackendDeleted int64  `json:"backendDeleted"`
	Detail         string `json:"detail"` // if failed: the reason and the next step
	Local          int64  `json:"local"`
	Waiting        int64  `json:"waiting"`
}

// Tools is the list of tools.
type Tools struct {
	Tools []Tool `json:"tools"`
}

// Tool is one of the agent's tools. Its schemas are JSON Schemas.
type Tool struct {
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"inputSchema"`
	Name         string          `json:"name"`
	NeedsAccount bool            `json:"needsAccount"`
	OutputSchema json.RawMessage `json:"outputSchema"`
	Title        string          `json:"title"`
}

// ToolRequest calls a tool. Arguments is a JSON object; absent means {}. The result contains a notice only if
// PrintsNotice is set, with which the client promises to print it.
type ToolRequest struct {
	Name         string          `json:"name"`
	Arguments    json.RawMessage `json:"arguments,omitempty"`
	PrintsNotice bool            `json:"printsNotice,omitempty"`
}

// SessionRequest contains the arguments of startLocalSimulation, as in ToolRequest.
type SessionRequest struct {
	Arguments    json.RawMessage `json:"arguments,omitempty"`
	PrintsNotice bool            `json:"printsNotice,omitempty"`
}

// ToolEvent is one line of a tool call. Exactly one field is set.
type ToolEvent struct {
	Progress *Progress   `json:"progress,omitempty"`
	Result   *ToolResult `json:"result,omitempty"`
}

// Progress is a progress report of a tool call.
type Progress struct {
	Progress float64 `json:"progress"`
	Total    float64 `json:"total"`
	Message  string  `json:"message,omitempty"`
}

// ToolResult is the result of a tool call.
type ToolResult struct {
	IsError    bool            `json:"isError"`
	Structured json.RawMessage `json:"structured"`
	Images     []ToolImage     `json:"images,omitempty"`
	// Notice is the first-run notice on telemetry. Only one response contains it.
	Notice string `json:"notice,omitempty"`
}

// ToolImage is a picture in a result, encoded as base64.
type ToolImage struct {
	MIME string `json:"mime"`
	Data []byte `json:"data"`
}

// Fonts is the list of added fonts, in the order in which they were added.
type Fonts struct {
	Fonts []Font `json:"fonts"`
}

// FontAnswer is the font that was added or removed.
type FontAnswer struct {
	Font Font `json:"font"`
}

// Font is a font that the user added.
type Font struct {
	Bytes   int64  `json:"bytes"`
	Italic  bool   `json:"italic"`
	Name    string `json:"name"`
	Problem string `json:"problem"` // why the font is not used; empty if it is used
	SHA256  string `json:"sha256"`
	Weight  int    `json:"weight"` // 1 to 1000; 400 is regular, 700 bold
}

// GlassesRequest contains the number of seconds to search for glasses in range, at most 60. With 0, only remembered
// glasses are listed.
type GlassesRequest struct {
	Seconds int `json:"seconds,omitempty"`
}

// GlassesAnswer contains at most 96 pairs. The remembered ones come first, ordered by most recent use. Problem is the
// reason why the search failed.
type GlassesAnswer struct {
	Glasses []KnownGlasses `json:"glasses"`
	Problem *problem.Error `json:"problem,omitempty"`
}

// KnownGlasses is a pair with the stored description of its panel.
type KnownGlasses struct {
	Glasses
	Panel Panel `json:"panel"`
}

// Glasses is one pair of real glasses.
type Glasses struct {
	DeviceModel string `json:"deviceModel"`
	Name        string `json:"name"`
	// PanelChecked is set if the user saw a correct test picture.
	PanelChecked bool `json:"panelChecked"`
	// Parts are the radios of a pair in range; empty for a pair that is not in range.
	Parts []GlassesPart `json:"parts"`
	// SessionID is the open session to which the pair is connected, if any. Connected glasses are not in range of other
	// computers.
	SessionID string `json:"sessionId"`
	// Uncleared is set if the panel may still show a picture because a session ended without clearing it.
	Uncleared bool `json:"uncleared"`
	// UsedMs is the Unix time of the last connection in milliseconds; 0 means never.
	UsedMs int64 `json:"usedMs"`
}

// GlassesPart is one radio of a pair, e.g. its left arm. RSSI is in dBm; 0 if unknown.
type GlassesPart struct {
	Found bool   `json:"found"`
	Key   string `json:"key"`
	RSSI  int    `json:"rssi"`
}

// Panel is the user's description of a pair's panel: whether it lights the pixels of colour 0, and how many rows it
// has. 0 means the model's number of rows.
type Panel struct {
	Inverted bool `json:"inverted"`
	Rows     int  `json:"rows"`
	// IsChecked is set if the user saw a correct test picture.
	IsChecked bool `json:"checked"`
}

// PanelRequest stores the description of the panel of a session's glasses.
type PanelRequest struct {
	SessionID string `json:"sessionId"`
	Panel     Panel  `json:"panel"`
}

// Disconnected lists the sessions that were closed.
type Disconnected struct {
	SessionIDs []string `json:"sessionIds"`
}

// Checks contains the results of the doctor.
type Checks struct {
	Checks []Check `json:"checks"`
}

// Check is one result of the doctor. Fix is the next step.
type Check struct {
	Name   string `json:"name"`
	State  string `json:"state"` // ok | warn | fail
	Detail string `json:"detail"`
	Fix    string `json:"fix,omitempty"`
}

// Stopped contains the process ID of the daemon that is stopping.
type Stopped struct {
	PID int `json:"pid"`
}
