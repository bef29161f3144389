package sessions

import (
	"context"
	"errors"
	"fmt"

	"github.com/service-dev/service/backend/internal/secret"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/assistantscript"
	"github.com/service-dev/service/internal/credential"
)

// AssistantRelay is the part of the relay that Assistants needs. It is an interface because package relay imports this
// one.
type AssistantRelay interface {
	// GatewayChanged sends a token to each attached app that has none.
	GatewayChanged(ctx context.Context, sessionID string)
	// GatewaysChanged does the same for all sessions of an account.
	GatewaysChanged(ctx context.Context, accountID string)
	// LogAssistant appends a row to the event log.
	LogAssistant(ctx context.Context, sessionID, row string, payload any)
}

// Assistants provides the apps of sessions with access to the AI gateway, and answers their calls from scripts.
type Assistants struct {
	Sessions *Service
	Store    *Store
	Live     AssistantRelay
	// URL is the gateway's address for apps; it ends in /v1.
	URL string
	// HasModels reports whether the apps of a project can call a model without a script. If nil, none can.
	HasModels func(ctx context.Context, accountID, project string) (bool, error)
}

// SetScript sets the assistant script of a session. It returns ErrNotFound, ErrClosed or an *InvalidError on failure.
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

// Script returns the assistant script of an open session, or nil if it has none. It returns ErrClosed if the session is
// not open.
func (a *Assistants) Script(ctx context.Context, id string) (*assistantscript.Script, error) {
	text, err := a.Store.AssistantScript(ctx, id, a.Sessions.now())
	if err != nil || text == "" {
		return nil, err
	}
	return assistantscript.Parse([]byte(text))
}

// Gateway returns the gateway's addresses and a new token for an app, or nil if the session has no model to call.
func (a *Assistants) Gateway(ctx context.Context, id string) (*glasses.Gateway, error) {
	if has, err := a.hasGateway(ctx, id); err != nil || !has {
		return nil, err
	}
	token, now := secret.New(credential.Gateway), a.Sessions.now()
	if err := a.Store.AddGatewayToken(ctx, id, a.hash(token), now, now.Add(glasses.GatewayTokenLife)); err != nil {
		return nil, fmt.Errorf("save gateway token: %w", err)
	}
	return &glasses.Gateway{URL: a.URL, Token: token}, nil
}

// hasGateway reports whether a session has a script or its project has models.
func (a *Assistants) hasGateway(ctx context.Context, id string) (bool, error) {
	switch text, err := a.Store.AssistantScript(ctx, id, a.Sessions.now()); {
	case errors.Is(err, ErrClosed):
		return false, nil
	case err != nil || text != "" || a.HasModels == nil:
		return text != "", err
	}
	s, err := a.Sessions.Store.Session(ctx, id)
	if err != nil {
		return false, fmt.Errorf("read session: %w", err)
	}
	return a.HasModels(ctx, s.Owner.AccountID, s.Project)
}

// ModelsChanged sends gateway tokens to the attached apps of an account that have none. Call it when a project may have
// gained its first model.
func (a *Assistants) ModelsChanged(ctx context.Context, accountID string) {
	a.Live.GatewaysChanged(ctx, accountID)
}

// Open returns the open session that the token belongs to, or ErrBadSecret.
func (a *Assistants) Open(ctx context.Context, token string) (Session, error) {
	if !secret.Valid(credential.Gateway, token) {
		return Session{}, ErrBadSecret
	}
	return a.Store.SessionByGatewayToken(ctx, a.hash(token), a.Sessions.now())
}

// LogAssistant appends a row about the app's assistant to the session's event log.
func (a *Assistants) LogAssistant(ctx context.Context, id, row string, payload any) {
	a.Live.LogAssistant(ctx, id, row, payload)
}

func (a *Assistants) hash(token string) string { return a.Sessions.Hasher.Hash("gateway token", token) }
