package relay

import (
	"context"
	"time"

	"github.com/service-dev/service/glasses"
)

// Gateways provides the apps of sessions with access to AI models. It is an interface so that tests can let it fail and
// let tokens end early.
type Gateways interface {
	// Gateway returns the gateway's addresses and a new token for an app of a session, or nil if the session has no
	// model to call.
	Gateway(ctx context.Context, sessionID string) (*glasses.Gateway, error)
}

// NewGateway returns the gateway's addresses and a new token for an app (host.Host).
func (s *liveSession) NewGateway(ctx context.Context, _ *conn) (*glasses.Gateway, error) {
	if s.hub.Gateways == nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	g, err := s.hub.Gateways.Gateway(ctx, s.id)
	if err != nil {
		s.hub.Logger.Warn("failed to create gateway token", "session", s.id, "err", err)
	}
	return g, err
}

// TokenTime returns the current time (host.Host).
func (s *liveSession) TokenTime() time.Time { return s.hub.Now() }

// GatewayChanged sends a token to the attached apps of a session that have none.
func (h *Hub) GatewayChanged(ctx context.Context, sessionID string) {
	if s, ok := h.hold(sessionID); ok {
		defer h.release(s)
		s.RenewTokens(ctx, true)
	}
}

// GatewaysChanged sends a token to the attached apps of an account's sessions that have none.
func (h *Hub) GatewaysChanged(ctx context.Context, accountID string) {
	for _, s := range h.holdOwned(accountID, "") {
		s.RenewTokens(ctx, true)
		h.release(s)
	}
}

// LogAssistant appends a row about an app's assistant, with a type such as glasses.RowToolCalled.
func (h *Hub) LogAssistant(ctx context.Context, sessionID, row string, payload any) {
	s, ok := h.hold(sessionID)
	if !ok {
		return
	}
	defer h.release(s)
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.Log(ctx, row, payload)
}
