package control

import (
	"context"
	"encoding/json"
	"time"

	"github.com/service-dev/service/daemon/internal/account"
	"github.com/service-dev/service/daemon/internal/link"
	"github.com/service-dev/service/daemon/internal/tools"
	"github.com/service-dev/service/proto/rendezvous"
)

// In all interfaces the caller is in the context (package caller).

// Accounts answers what is known of the link, for the caller's backend.
type Accounts interface {
	// InstallID is the anonymous id of this install.
	InstallID() string
	// Link is the snapshot; its State is OtherBackend when the caller's backend did not mint it.
	Link(ctx context.Context) account.Link
	// Verify asks the backend about the token and returns the link with the fresh verdict. It does nothing when there
	// is no token to ask about.
	Verify(ctx context.Context) account.Link
	// Logout deletes auth.json and asks the backend to revoke its token.
	Logout(ctx context.Context) (LoggedOut, error)
}

// LoggedOut is what a logout did. Was is false when there was no link; RevokeURL is where the person revokes a token
// that could not be revoked.
type LoggedOut struct {
	Was, Revoked    bool
	Path, RevokeURL string
}

// Logins makes device-code flows on behalf of the CLI.
type Logins interface {
	// Begin issues a code of its own. replace allows that a live link of another account or backend is replaced.
	Begin(ctx context.Context, replace bool) (Attempt, error)
	// Open opens the verification page for the caller; reason says why it did not.
	Open(ctx context.Context, url string) (opened bool, reason string)
}

// Attempt is one login.
type Attempt interface {
	Code() link.Code
	// Wait polls until an outcome; when ctx ends first, the polling stops for good.
	Wait(ctx context.Context, onPoll func(link.PollEvent)) (link.Outcome, error)
}

// Consents keeps the telemetry decision.
type Consents interface {
	Consent(ctx context.Context) Consent
	// SetConsent takes accepted or declined and returns the file it wrote.
	SetConsent(ctx context.Context, state string) (path string, err error)
}

// Catalogue is the agent's tools.
type Catalogue interface {
	List() []tools.Tool
	Call(ctx context.Context, name string, args json.RawMessage, io tools.IO) tools.Result
}

// System tells of the daemon itself.
type System interface {
	Plugins() []Plugin
	Load() Load
	Backend(ctx context.Context) Backend
	Doctor(ctx context.Context) []Check
	// CloseLocalSession ends a local session; one that is closed already is no error.
	CloseLocalSession(ctx context.Context, id string) error
	// Stop begins the drain and returns at once.
	Stop()
}

// About is what does not change while a daemon runs.
type About struct {
	Version string
	PID     int
	Started time.Time
	Managed bool
	// SocketActivated daemons got their sockets from the service manager.
	SocketActivated bool
	// Program is the file that runs; empty when the system does not tell.
	Program string
	Paths   rendezvous.Paths
}

// Load is what a daemon holds at this moment.
type Load struct {
	// MCPClients are the agents that are connected, Sessions the open sessions, Polling the codes that are being polled.
	MCPClients, Sessions, Polling int
	// Replaced tells that another file lies where About.Program was started from: a restart brings that one.
	Replaced bool
	// ConfigProblem is why config.yaml as it is now is not in use; empty when it is.
	ConfigProblem string
}

// Consent is a decision and what follows from it for the caller. DecidedBy names the switch that won.
type Consent struct {
	State         string
	UploadAllowed bool
	DecidedBy     string
}

// Backend is where the caller's calls go. The words are those of control.proto.
type Backend struct{ Kind, URL, ChosenBy, State, Detail, DashboardURL string }

// Plugin is one adapter.
type Plugin struct {
	Name, Path, State, Version, LastError string
	PID, Restarts                         int
	Verified                              bool
	// Since is when it last began to run, Crashed when it last crashed, Resume when it is started again; zero for never.
	Since, Crashed, Resume time.Time
}

// Check is one finding of the doctor: State is ok, warn or fail; Fix says what to do.
type Check struct{ Name, State, Detail, Fix string }
