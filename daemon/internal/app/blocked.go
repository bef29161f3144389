package app

import (
	"context"
	"encoding/json"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/codes"
)

// blocked replaces the adapters where a sandbox forbids sockets. Every call that needs an adapter fails with an error
// that names the socket to allow.
type blocked struct{ path string }

func (b blocked) problem() error {
	return &backend.Problem{
		Code:    backend.CodeSandboxBlocked,
		Message: "the sandbox of this agent does not let it reach the daemon's socket " + b.path,
		FixHint: "Allow the agent's sandbox to connect to the Unix socket " + b.path +
			" (for example in its list of allowed sockets or writable paths), then restart the agent's MCP server. Tools that need no account work meanwhile.",
	}
}

func (b blocked) IssueDeviceCode(context.Context, backend.Target, string) (backend.DeviceCode, error) {
	return backend.DeviceCode{}, b.problem()
}

func (b blocked) PollDeviceToken(context.Context, backend.Target, string) (backend.Poll, error) {
	return backend.Poll{}, b.problem()
}

func (b blocked) Account(context.Context, backend.Target) (backend.Account, error) {
	return backend.Account{}, b.problem()
}

func (b blocked) RevokeLink(context.Context, backend.Target) error { return b.problem() }

func (b blocked) Health(context.Context, backend.Target) (backend.Health, error) {
	return backend.Health{}, b.problem()
}

func (b blocked) CreateSession(context.Context, backend.Target, backend.SessionRequest) (backend.Session, bool, error) {
	return backend.Session{}, false, b.problem()
}

func (b blocked) GetSession(context.Context, backend.Target, string) (backend.Session, error) {
	return backend.Session{}, b.problem()
}

func (b blocked) ListSessions(context.Context, backend.Target) ([]backend.Session, error) {
	return nil, b.problem()
}

func (b blocked) CloseSession(context.Context, backend.Target, string) (backend.Session, error) {
	return backend.Session{}, b.problem()
}

func (b blocked) MintSessionSecret(context.Context, backend.Target, string) (string, error) {
	return "", b.problem()
}

func (b blocked) ListEvents(context.Context, backend.Target, string, int64, int) (backend.EventPage, error) {
	return backend.EventPage{}, b.problem()
}

func (b blocked) WaitEvents(context.Context, backend.Target, string, int64, int, time.Duration) (backend.EventPage, error) {
	return backend.EventPage{}, b.problem()
}

func (b blocked) Control(context.Context, backend.Target, string, string, json.RawMessage, []byte) (json.RawMessage, error) {
	return nil, b.problem()
}

func (b blocked) MintProjectKey(context.Context, backend.Target, string, string) (backend.ProjectKey, error) {
	return backend.ProjectKey{}, b.problem()
}

func (b blocked) Projects(context.Context, backend.Target) ([]backend.Project, error) {
	return nil, b.problem()
}

func (b blocked) Assistant(context.Context, backend.Target, string) (backend.AssistantConfig, error) {
	return backend.AssistantConfig{}, b.problem()
}

func (b blocked) ChangeAssistant(context.Context, backend.Target, string, backend.AssistantChange) (backend.AssistantConfig, error) {
	return backend.AssistantConfig{}, b.problem()
}

func (b blocked) Credentials(context.Context, backend.Target, string) (backend.CredentialList, error) {
	return backend.CredentialList{}, b.problem()
}

func (b blocked) CredentialLink(context.Context, backend.Target, string, string) (backend.CredentialLink, error) {
	return backend.CredentialLink{}, b.problem()
}

func (b blocked) Analytics(context.Context, backend.Target, string, backend.AnalyticsQuery) (backend.AnalyticsReport, error) {
	return backend.AnalyticsReport{}, b.problem()
}

func (b blocked) ConnectionPage(context.Context, backend.Target, string) (backend.ConnectionPage, error) {
	return backend.ConnectionPage{}, b.problem()
}

func (b blocked) ChangeConnectionPage(context.Context, backend.Target, string, backend.ConnectionPageChange) (backend.ConnectionPage, error) {
	return backend.ConnectionPage{}, b.problem()
}

func (b blocked) ConnectionPageFile(context.Context, backend.Target, string) (backend.ConnectionPageFile, error) {
	return backend.ConnectionPageFile{}, b.problem()
}

func (b blocked) Attach(context.Context, string, backend.TransportOpen) (backend.Glasses, error) {
	return nil, b.problem()
}

func (b blocked) Embedded(context.Context) (id, baseURL string, err error) {
	return "", "", b.problem()
}

// Find refuses, so that completing a link says what blocks it.
func (b blocked) Find(string) (codes.Issued, bool, error) { return codes.Issued{}, false, b.problem() }

func (b blocked) Put(string, codes.Issued) error { return b.problem() }

func (b blocked) Remove(string) error { return nil }

func (b blocked) Activity(context.Context) (connections, pendingCodes int) { return 0, 0 }
