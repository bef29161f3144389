package relay

import "github.com/service-dev/service/glasses/host"

// audience is the side of a session that a message is sent to.
type audience bool

const (
	toApps  audience = false
	toPages audience = true
)

// publish sends a message to the apps or pages of a session. If peers lag behind, it returns the channel of one of
// them, for which the sender of a stream may wait; otherwise it returns nil.
func (s *liveSession) publish(to audience, m host.Message) (relieved <-chan struct{}) {
	s.peersMu.Lock()
	defer s.peersMu.Unlock()
	for _, c := range *s.peersOf(to) {
		if r := c.Send(m); r != nil {
			relieved = r
		}
	}
	return relieved
}

// publish sends a message to the apps or pages of a session, if any are attached.
func (h *Hub) publish(sessionID string, to audience, m host.Message) {
	h.mu.Lock()
	s := h.live[sessionID]
	h.mu.Unlock()
	if s != nil {
		s.publish(to, m)
	}
}
