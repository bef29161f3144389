package control

import (
	"context"
	"encoding/json"
	"time"

	"github.com/service-dev/service/daemon/internal/account"
	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/link"
	"github.com/service-dev/service/daemon/internal/tools"
	"github.com/service-dev/service/internal/rendezvous"
)

// Daemon is the part of the daemon that the control API reads and changes. The context of every method contains the
// caller (package caller).
type Daemon interface {
	// The account link, for the caller's backend.

	// InstallID returns the anonymous id of this install.
	InstallID() string
	// Link returns the current link. Its State is OtherBackend if a backend other than the caller's issued it.
	Link(ctx context.Context) account.Link
	// Verify asks the backend whether the token is valid and returns the link with the verdict. Without a token it makes
	// no request.
	Verify(ctx context.Context) account.Link
	// Logout deletes auth.json and asks the backend to revoke its token.
	Logout(ctx context.Context) (LoggedOut, error)

	// Device-code flows.

	// Begin issues a code. replace allows a live link of another account or backend to be replaced.
	Begin(ctx context.Context, replace bool) (Attempt, error)
	// Open opens the verification page for the caller. reason explains why the page was not opened.
	Open(ctx context.Context, url string) (opened bool, reason string)

	// The telemetry decision.

	Consent(ctx context.Context) Consent
	// SetConsent stores accepted or declined and returns the path of the written file.
	SetConsent(ctx context.Context, state string) (path string, err error)

	// Usage events and the first-run notice about them.

	Telemetry(ctx context.Context) TelemetryStatus
	// PurgeTelemetry erases recorded events on this machine and at the backends. The error covers this machine only.
	PurgeTelemetry(ctx context.Context) (TelemetryPurged, error)
	// TakeNotice claims the notice for one response. ok is false if no notice is pending. The caller must call done
	// exactly once; sent reports whether the response was sent.
	TakeNotice(ctx context.Context) (text string, done func(sent bool), ok bool)

	// Real glasses.

	// KnownPairs returns the remembered and connected pairs, most recently used first.
	KnownPairs() []KnownPair
	// ScanPairs looks for pairs in range. It returns a *problem.Error, or ctx's error.
	ScanPairs(ctx context.Context, length time.Duration) ([]backend.FoundPair, error)
	// CloseRealSessions closes the sessions of the caller's directory that use real glasses, and returns their IDs.
	CloseRealSessions(ctx context.Context) ([]string, error)
	// ForgetPair forgets the pair with this name, ignoring case.
	ForgetPair(name string) error
	// SetPanel stores and applies the user's description of the panel of a session's glasses.
	SetPanel(sessionID string, panel backend.PairPanel) error

	// Adapters added by the user. These methods return a *problem.Error on failure.

	AddPlugin(ctx context.Context, path, sha256 string) (Plugin, error)
	RemovePlugin(ctx context.Context, name string) (Plugin, error)

	// Accounts of the embedded backend. These methods return a *problem.Error if the caller uses another backend.

	// LocalAccounts returns all accounts, or only the account with the given email address.
	LocalAccounts(ctx context.Context, email string) ([]backend.LocalAccount, error)
	// ResetPassword also returns the page on which to sign in.
	ResetPassword(ctx context.Context, p backend.NewPassword) (reset backend.PasswordReset, signInURL string, err error)

	// The daemon itself.

	Plugins() []Plugin
	Load() Load
	Backend(ctx context.Context) Backend
	Doctor(ctx context.Context) []Check
	// HoldLocalSession ties a local session to its client. release closes the session and may be called for a closed
	// one.
	HoldLocalSession(id string) (release func(ctx context.Context) error)
	// Stop starts the shutdown and returns immediately.
	Stop()
}

// LoggedOut is the outcome of a logout. Was reports whether there was a link. RevokeURL is the page on which the user
// can revoke the token if the backend was not reached.
type LoggedOut struct {
	Was, Revoked    bool
	Path, RevokeURL string
}

// Attempt is one login.
type Attempt interface {
	Code() link.Code
	// Wait polls until there is an outcome. If ctx ends first, the polling stops and does not resume.
	Wait(ctx context.Context, onPoll func(link.PollEvent)) (link.Outcome, error)
}

// Catalogue is the set of tools that an agent sees.
type Catalogue interface {
	List() []tools.Tool
	Call(ctx context.Context, name string, args json.RawMessage, io tools.IO) tools.Result
}

// About describes a daemon. It does not change while the daemon runs.
type About struct {
	Version string
	PID     int
	Started time.Time
	Managed bool
	// SocketActivated reports whether the service manager created the sockets.
	SocketActivated bool
	// Program is the path of the executable; empty if unknown.
	Program string
	Paths   rendezvous.Paths
}

// Load is the current state of a daemon.
type Load struct {
	// MCPClients, Sessions and Polling are the numbers of connected agents, open sessions and codes being polled.
	MCPClients, Sessions, Polling int
	// Replaced reports whether the executable at About.Program was replaced, so that a restart would run the new one.
	Replaced bool
	// ConfigProblem is the reason why the current config.yaml is not in use; empty if it is in use.
	ConfigProblem string
	// UnclearedGlasses lists the glasses that may still show a picture because a session ended without clearing it.
	UnclearedGlasses []string
}

// Consent is a decision and its effect for the caller. DecidedBy names the switch that determined the effect.
type Consent struct {
	State         string
	UploadAllowed bool
	DecidedBy     string
}

// Backend is the caller's backend. Package proto/control defines the values.
type Backend struct{ Kind, URL, ChosenBy, State, Detail, DashboardURL string }

// Plugin is one adapter.
type Plugin struct {
	Name, Path, State, Version, LastError string
	PID, Restarts                         int
	Verified                              bool
	// Since, Crashed and Resume are the times of the last start, the last crash and the next start after a crash. Each
	// is zero if there is none.
	Since, Crashed, Resume time.Time
	// Added, SHA256 and the fields after it describe an adapter that the user added: when it was added, the hash of its
	// file in hexadecimal, its owner, and its display name.
	Added                time.Time
	SHA256, Owner, Title string
}

// Check is one result of the doctor. State is ok, warn or fail; Fix is the next step.
type Check struct{ Name, State, Detail, Fix string }
