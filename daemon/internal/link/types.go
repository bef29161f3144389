package link

import (
	"context"
	"encoding/json"
	"time"

	"github.com/service-dev/service/daemon/internal/account"
	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
)

// Backend is what the flow needs of an adapter. Errors are *backend.Problem.
type Backend interface {
	IssueDeviceCode(ctx context.Context, target backend.Target, scope string) (backend.DeviceCode, error)
	PollDeviceToken(ctx context.Context, target backend.Target, deviceCode string) (backend.Poll, error)
	Account(ctx context.Context, target backend.Target) (backend.Account, error)
	// RevokeLink revokes the target's own bearer.
	RevokeLink(ctx context.Context, target backend.Target) error
}

// Embedder tells which embedded backend serves here, starting it where needed.
type Embedder interface {
	Embedded(ctx context.Context) (id, baseURL string, err error)
}

// Recorder takes the three account events.
type Recorder interface {
	Record(ctx context.Context, event string, fields map[string]any)
}

// CodeAuthTimeout is the code of a Complete whose wait ended without an answer.
const CodeAuthTimeout = "auth_timeout"

// CodeLinkConflict is the code of an approval that would replace a live link of another account or backend.
const CodeLinkConflict = "link_conflict"

// CodeInvalidConfig is the code of a backend address that cannot be used.
const CodeInvalidConfig = "invalid_config"

// Defaults and bounds of a wait.
const (
	DefaultWait     = 600 * time.Second
	MaxWait         = 600 * time.Second
	DefaultInterval = 5 * time.Second
	MaxInterval     = 30 * time.Second
)

// GatedCall is the call that asked for a code. It is opaque here: tools runs it again once the code was approved.
type GatedCall struct {
	Tool   string
	Args   json.RawMessage
	Caller caller.Caller
}

// Code is a live device code as a person needs it. ExpiresIn is what is left of it now.
type Code struct {
	backend.DeviceCode
	// BackendURL is where the code was issued: a URL or "embedded:<id>".
	BackendURL string
	// Replaces is the link that a success would replace; its State is NotLinked when there is none.
	Replaces account.Link
	// Fresh is true when the code was issued for this call and false when it was live before.
	Fresh bool
}

// PollEvent tells that a poll was made and the person has not finished.
type PollEvent struct {
	PollCount int
	// Remaining is what is left of this caller's wait.
	Remaining time.Duration
	// Note says what is unusual, e.g. that the backend could not be reached and is tried again; empty otherwise.
	Note string
}

// Wait is how a caller wants to wait for an approval. The zero value waits 600 s, polling every 5 s.
type Wait struct {
	// Max is capped at 600 s and raised to 1 s; 0 means 600 s.
	Max time.Duration
	// Interval is clamped to 1..30 s; 0 means 5 s. A larger interval of the backend wins.
	Interval time.Duration
	// OnPoll is called after each poll, on the waiter's goroutine; nil for none.
	OnPoll func(PollEvent)
}

// Outcome is a link that was made.
type Outcome struct {
	AccountID string
	Tier      string
	LinkedAt  time.Time
	// ExpiresAt is nil for a token that never expires.
	ExpiresAt *time.Time
	File      AuthFile
	PollCount int
	// BackendURL is the backend that minted the token.
	BackendURL string
	// RevokeURL is where the person revokes the token that was replaced; empty when that is done or there was none.
	RevokeURL string
}

// AuthFile tells what became of auth.json. Error is empty when it was written.
type AuthFile struct {
	Path    string
	Written bool
	Error   string
}
