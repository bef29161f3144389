package relay

import (
	"context"
	"crypto/rand"
	"slices"
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

// newGateway returns the gateway's addresses and a new token for an app. It returns nil if there is no model to call,
// or if the token could not be stored; in that case the next check tries again.
func (s *liveSession) newGateway(ctx context.Context, c *conn) *glasses.Gateway {
	if s.hub.Gateways == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	g, err := s.hub.Gateways.Gateway(ctx, s.id)
	ends := s.hub.Now() // due now
	switch {
	case err != nil:
		s.hub.Logger.Warn("failed to create gateway token", "session", s.id, "err", err)
		g = nil
	case g == nil:
		ends = time.Time{}
	default:
		ends = ends.Add(glasses.GatewayTokenLife)
	}
	s.peersMu.Lock()
	defer s.peersMu.Unlock()
	c.tokenEnds = ends
	return g
}

// renewTokens sends a new token to the apps whose token expires soon. If hasChanged is set, the session may have gained
// a gateway, so it also sends a token to the apps that have none.
func (s *liveSession) renewTokens(ctx context.Context, hasChanged bool) {
	now := s.hub.Now()
	s.peersMu.Lock()
	due := slices.DeleteFunc(slices.Clone(s.apps), func(c *conn) bool {
		return !c.takesTokens || c.tokenEnds.IsZero() && !hasChanged || c.tokenEnds.Sub(now) >= glasses.GatewayTokenRenew
	})
	s.peersMu.Unlock()
	for _, c := range due {
		if g := s.newGateway(ctx, c); g != nil {
			c.SendText(s.hub.frame(glasses.TypeGatewayToken, "gateway-"+rand.Text(), g))
		}
	}
}

// GatewayChanged sends a token to the attached apps of a session that have none.
func (h *Hub) GatewayChanged(ctx context.Context, sessionID string) {
	if s, ok := h.hold(sessionID); ok {
		defer h.release(s)
		s.renewTokens(ctx, true)
	}
}

// GatewaysChanged sends a token to the attached apps of an account's sessions that have none.
func (h *Hub) GatewaysChanged(ctx context.Context, accountID string) {
	for _, s := range h.holdOwned(accountID, "") {
		s.renewTokens(ctx, true)
		h.release(s)
	}
}

// ToolCalled appends a row about a call of one of an app's tools.
func (h *Hub) ToolCalled(ctx context.Context, sessionID string, call glasses.ToolCalled) {
	s, ok := h.hold(sessionID)
	if !ok {
		return
	}
	defer h.release(s)
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logService(ctx, glasses.RowToolCalled, call)
}
