package link

import (
	"context"
	"encoding/json"
	"time"

	"github.com/service-dev/service/daemon/internal/account"
	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
)

// Backend is the part of an adapter that a flow uses. Its methods return a *problem.Error on failure.
type Backend interface {
	IssueDeviceCode(ctx context.Context, target backend.Target, scope string) (backend.DeviceCode, error)
	PollDeviceToken(ctx context.Context, target backend.Target, deviceCode string) (backend.Poll, error)
	// CancelDeviceCode cancels a code that will not be polled again. It also revokes the code's token if the token was
	// never used.
	CancelDeviceCode(ctx context.Context, target backend.Target, deviceCode string) error
	Account(ctx context.Context, target backend.Target) (backend.Account, error)
	// RevokeLink revokes the target's bearer token.
	RevokeLink(ctx context.Context, target backend.Target) error
	// Embedded returns the embedded backend, starting it if necessary.
	Embedded(ctx context.Context) (id, baseURL string, err error)
}

// Recorder records account events.
type Recorder interface {
	Record(ctx context.Context, event string, fields map[string]any)
}

// Defaults and limits of a wait. They apply to one call, not to the validity of its code.
const (
	DefaultWait     = 600 * time.Second
	MaxWait         = 600 * time.Second
	DefaultInterval = 5 * time.Second
	MaxInterval     = 30 * time.Second
)

// DefaultWindow is the validity of a code for which the backend reports none.
const DefaultWindow = 600 * time.Second

// GatedCall is the call that needed a code. Package tools repeats it once the code is approved.
type GatedCall struct {
	Tool   string
	Args   json.RawMessage
	Caller caller.Caller
}

// Code is a live device code as shown to the user. ExpiresIn is its remaining validity.
type Code struct {
	backend.DeviceCode
	// BackendURL is the backend that issued the code: a URL or "embedded:<id>".
	BackendURL string
	// Replaces is the link that an approval would replace; its State is NotLinked if there is none.
	Replaces account.Link
}

// PollEvent reports a poll after which the code is still pending.
type PollEvent struct {
	PollCount int
	// Remaining is how much longer this caller waits for the user. It never exceeds the code's remaining validity.
	Remaining time.Duration
	// Note describes an unusual event, e.g. that the backend cannot be reached; empty otherwise.
	Note string
}

// Wait configures how a caller waits for an approval. The zero value waits 600 s and polls every 5 s.
type Wait struct {
	// Max is capped at 600 s and raised to 1 s; 0 means 600 s.
	Max time.Duration
	// Interval is clamped to 1..30 s; 0 means 5 s. A longer interval requested by the backend takes precedence.
	Interval time.Duration
	// OnPoll is called after each poll, on the waiter's goroutine; it may be nil.
	OnPoll func(PollEvent)
	// OpenPage opens the page of the code in the caller's browser and reports whether it succeeded. It is called only
	// if the page has not been opened yet. It may be nil.
	OpenPage func(ctx context.Context, page string) bool
}

// Outcome is a completed link.
type Outcome struct {
	AccountID string
	Tier      string
	LinkedAt  time.Time
	// ExpiresAt is nil for a token that never expires.
	ExpiresAt *time.Time
	File      AuthFile
	PollCount int
	// BackendURL is the backend that issued the token.
	BackendURL string
	// RevokeURL is the page on which the user can revoke the replaced token; empty if the token was revoked or there
	// was none.
	RevokeURL string
	// Email is the account's address, which the terminal shows after a login. It is never set for an agent's code.
	Email string
}

// AuthFile is the outcome of writing auth.json. Error is empty if the file was written.
type AuthFile struct {
	Path    string
	Written bool
	Error   string
}
