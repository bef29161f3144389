package sessions

import (
	"context"
	"fmt"
	"time"

	"github.com/service-dev/service/backend/internal/secret"
	"github.com/service-dev/service/proto/assistantscript"
	"github.com/service-dev/service/proto/credential"
	"github.com/service-dev/service/proto/glasses"
)

// AssistantStore stores scripts, and tokens as hashes. Both end with their session.
type AssistantStore interface {
	// SetAssistantScript replaces the script of a session, or returns ErrClosed.
	SetAssistantScript(ctx context.Context, id, script string) error
	// AssistantScript returns the script of a session, or "".
	AssistantScript(ctx context.Context, id string) (string, error)
	AddGatewayToken(ctx context.Context, id, hash string, now, ends time.Time) error
	// SessionByGatewayToken returns the open session of a token that is valid, or ErrBadSecret.
	SessionByGatewayToken(ctx context.Context, hash string, now time.Time) (Session, error)
}

// AssistantRelay is the relay.
type AssistantRelay interface {
	// GatewayChanged sends a token to the attached apps that have none.
	GatewayChanged(ctx context.Context, sessionID string)
	// ToolCalled appends a row to the event log.
	ToolCalled(ctx context.Context, sessionID string, call glasses.ToolCalled)
}

// Assistants lets the apps of sessions call the AI gateway, and answers them by scripts.
type Assistants struct {
	Sessions *Service
	Store    AssistantStore
	Live     AssistantRelay
	// URL is the gateway's address for apps, which ends in /v1.
	URL string
	// HasModels is whether there is something to call without a script.
	HasModels bool
}

// SetScript sets the script of a session's assistant. The error may be ErrNotFound, ErrClosed or an *InvalidError.
func (a *Assistants) SetScript(ctx context.Context, accountID, id string, text []byte) error {
	got, err := a.Sessions.Get(ctx, accountID, id)
	switch {
	case err != nil:
		return err
	case !got.Open(a.Sessions.now()):
		return ErrClosed
	}
	script, err := assistantscript.Parse(text)
	if err != nil {
		return &InvalidError{"the assistant script: " + err.Error()}
	}
	if err := a.Store.SetAssistantScript(ctx, id, string(script.Encode())); err != nil {
		return fmt.Errorf("save assistant script: %w", err)
	}
	a.Live.GatewayChanged(ctx, id)
	return nil
}

// Script returns the script of a session's assistant, or nil.
func (a *Assistants) Script(ctx context.Context, id string) (*assistantscript.Script, error) {
	text, err := a.Store.AssistantScript(ctx, id)
	if err != nil || text == "" {
		return nil, err
	}
	return assistantscript.Parse([]byte(text))
}

// Gateway returns the gateway's addresses and a new token for an app of a session, or nil if the session has no model
// to call.
func (a *Assistants) Gateway(ctx context.Context, id string) (*glasses.Gateway, error) {
	if !a.HasModels {
		if text, err := a.Store.AssistantScript(ctx, id); err != nil || text == "" {
			return nil, err
		}
	}
	token, now := secret.New(credential.Gateway), a.Sessions.now()
	if err := a.Store.AddGatewayToken(ctx, id, a.hash(token), now, now.Add(glasses.GatewayTokenLife)); err != nil {
		return nil, fmt.Errorf("save gateway token: %w", err)
	}
	return &glasses.Gateway{URL: a.URL, Token: token}, nil
}

// Open returns the open session whose token this is, or ErrBadSecret.
func (a *Assistants) Open(ctx context.Context, token string) (Session, error) {
	if !secret.Valid(credential.Gateway, token) {
		return Session{}, ErrBadSecret
	}
	return a.Store.SessionByGatewayToken(ctx, a.hash(token), a.Sessions.now())
}

// ToolCalled notes in the event log of a session that an answer calls a tool of the app.
func (a *Assistants) ToolCalled(ctx context.Context, id, name, arguments string) {
	a.Live.ToolCalled(ctx, id, glasses.NewToolCalled(name, arguments))
}

func (a *Assistants) hash(token string) string { return a.Sessions.Hasher.Hash("gateway token", token) }
