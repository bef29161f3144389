package relay

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/host"
)

// Control sends a control frame to the page that acts as a session's glasses. It returns the payload of the result,
// which may be an error from the glasses. With media the frame is binary. It returns sessions.ErrNoGlasses if no page
// is open, and sessions.ErrNoAnswer if the page does not answer within ControlWait. Control frames and their results
// are not logged; the events they cause are.
func (h *Hub) Control(
	ctx context.Context, sessionID, typ string, payload json.RawMessage, media []byte,
) (json.RawMessage, error) {
	if _, err := glasses.ParseControl(typ, payload); err != nil {
		return refusedControl(err)
	}
	if typ == glasses.SimStanding {
		return refusedControl(&glasses.Error{Code: glasses.CodeUnsupported, Message: typ + " is reserved for the service"})
	}
	if len(media) == 0 {
		media = nil
	}
	id := host.NewControlID()
	m, err := host.ControlFrame(typ, id, h.Now().UnixMilli(), payload, media)
	if err != nil {
		return refusedControl(err)
	}
	s, ok := h.hold(sessionID)
	if !ok {
		return nil, sessions.ErrNoGlasses
	}
	defer h.release(s)
	c := s.active.Load()
	if c == nil {
		return nil, sessions.ErrNoGlasses
	}
	answer := s.controls.Expect(id)
	defer s.controls.Take(id)
	c.Send(m)
	select {
	case result := <-answer:
		return result, nil
	case <-c.Leaves():
		return nil, sessions.ErrNoGlasses
	case <-time.After(h.ControlWait):
		return nil, sessions.ErrNoAnswer
	case <-h.life.Done():
		return nil, sessions.ErrNoGlasses
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// refusedControl returns the result for a control frame that all glasses would reject.
func refusedControl(err error) (json.RawMessage, error) {
	var refusal *glasses.Error
	if !errors.As(err, &refusal) {
		return nil, err
	}
	return json.Marshal(glasses.Result{Error: refusal})
}

// deliverControl passes the result of a control frame to its caller. It returns false for any other result. It
// acknowledges a result even if the caller has given up.
func (s *liveSession) deliverControl(c *conn, f glasses.Frame) bool {
	if !host.IsControlID(f.ID) {
		return false
	}
	answer := s.controls.Take(f.ID)
	if answer == nil && s.IsCommand(f.ID) {
		return false // an app chose an ID with this prefix
	}
	if answer != nil {
		answer <- f.Payload
	}
	c.SendText(s.hub.frame(glasses.TypeAck, f.ID, glasses.Ack{ID: f.ID, Kind: glasses.KindResult}))
	return true
}
